// Package hosts is a session's way to hosts outside, by name: a resolver, which answers for
// every name server, and a relay, which dials what is allowed, from this process's network. It
// joins the engine, package egress, with this machine: its files, its name servers, its proxies.
//
// It knows nothing of how a connection of the session comes to it: that is package broker's.
package hosts

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/names"
	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// Config says what a session may reach, and what this machine says of names.
type Config struct {
	Rules    *rule.Set
	NXDomain bool          // as in resolve.Hosts
	Entries  []names.Entry // of hosts(5)
	Search   []string      // the search list of resolv.conf(5)
	Proxies  *relay.Proxies
	Asker    Asker // nil: nobody is asked
	Observe  bool  // all that a rule could allow is allowed: see rule.Observed
}

// Read reads this machine's files and the variables that name proxies. The error is about these
// variables.
func Read(allowed *resolve.Hosts, h *host.Host) (*Config, error) {
	c := &Config{Rules: allowed.Rules, NXDomain: allowed.NXDomain}
	if h == nil {
		return c, nil
	}
	text, _ := h.ReadFile("/etc/hosts") // harmless: then names in it are asked upstream
	c.Entries = entries(string(text))
	text, _ = h.ReadFile("/etc/resolv.conf") // harmless: then there is no search list
	c.Search = search(string(text))
	var err error
	c.Proxies, err = relay.ParseProxies(proxyVariables(h.Env))
	return c, err
}

// entries reads hosts(5).
func entries(text string) (all []names.Entry) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(f[0])
		if err == nil {
			all = append(all, names.Entry{Addr: addr, Names: f[1:]})
		}
	}
	return all
}

// search returns the search list of resolv.conf(5): the last of the lines that name one.
func search(text string) (all []string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) > 1 && (f[0] == "search" || f[0] == "domain") {
			all = f[1:]
		}
	}
	return all
}

// proxyVariables returns the values of the variables that name proxies. A name in lower case
// outranks the one in upper case. HTTP_PROXY is not read, since a web server sets it from what a
// client sends (CVE-2016-5385); curl does not read it either.
func proxyVariables(env []string) (v relay.Variables) {
	value := func(names ...string) string {
		for _, name := range names {
			for _, e := range env {
				text, ok := strings.CutPrefix(e, name+"=")
				if ok && text != "" {
					return text
				}
			}
		}
		return ""
	}
	v.HTTPProxy = value("http_proxy")
	v.HTTPSProxy = value("https_proxy", "HTTPS_PROXY")
	v.AllProxy = value("all_proxy", "ALL_PROXY")
	v.NoProxy = value("no_proxy", "NO_PROXY")
	return v
}

// Net is what serves one session.
type Net struct {
	Rules    *rules
	Resolver *names.Resolver
	Relay    *relay.Relay
	Events   egress.Sink

	streams atomic.Int32 // questions' connections by TCP, at most as many as the relay's
}

// New returns what serves a session. Events must not wait.
func New(c *Config, most int, events egress.Sink) *Net {
	n := &Net{Rules: newRules(c), Events: events}
	n.Resolver = names.New(names.Config{
		Rules:     n.Rules,
		Lookup:    lookup,
		Hosts:     c.Entries,
		Search:    c.Search,
		NXDomain:  c.NXDomain && c.Asker == nil, // nobody connects to a name that does not exist
		Synthetic: c.Proxies != nil,
		Events:    events,
	})
	n.Relay = relay.New(relay.Config{
		Rules:   n.Rules,
		Dialer:  dial,
		Addrs:   n.Resolver.Addrs,
		Proxies: c.Proxies,
		Events:  events,
		Most:    most,
		Consult: n.consulting(),
	})
	return n
}

// Ask returns what a connection to an address asks for, and whether that is allowed.
func (n *Net) Ask(to netip.AddrPort) (rule.Ask, rule.Verdict) {
	ask := n.Resolver.Ask(to.Addr(), to.Port())
	return ask, n.Rules.Decide(ask)
}

// lookup asks this machine's name servers. How long an answer holds is not known.
func lookup(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
	r := net.Resolver{PreferGo: true}
	all, err := r.LookupNetIP(ctx, "ip", name+".")
	var failed *net.DNSError
	if errors.As(err, &failed) && failed.IsNotFound {
		err = names.ErrNotFound
	}
	return all, 0, err
}

// dial connects from this process's network.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// Errno returns the error of connect(2) for an error of Relay.Dial.
func Errno(err error) syscall.Errno {
	var refusal *relay.Refusal
	refused := errors.As(err, &refusal)
	errno := syscall.ECONNREFUSED
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		errno = syscall.ETIMEDOUT
	case refused && refusal.Verdict.Reason == rule.Limit:
		errno = syscall.EAGAIN
	case refused && refusal.Verdict.Reason != rule.Upstream:
		errno = syscall.EACCES
	default:
		_ = errors.As(err, &errno) // harmless: an error without a number counts as refused
	}
	return errno
}
