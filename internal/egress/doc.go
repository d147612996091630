// Package egress is the engine of a network by name: a list of hosts is allowed, and
// nothing else. Package hosts joins it with a machine.
//
// Its packages know no kernel, no files and no policy. Whoever uses them brings rules,
// connections, a dialer, a lookup and a place for events:
//
//   - rule reads rules, and decides: for a check, the resolver, the broker and the relay
//   - names answers DNS messages, and knows which address it has handed out for which name
//   - relay dials what is allowed, looks at what a client sends, and passes bytes on
//   - proxy is the front where connections can't be mediated: CONNECT and SOCKS5
//   - hello reads a ClientHello, http1 requests: they know no rules
package egress
