package seccomp

import (
	"slices"

	"github.com/zsbx/zsbx/internal/resolve"
)

// The address families, types and protocols that the rules name
// (linux/socket.h, linux/in.h, linux/netlink.h).
const (
	AfUnix    = 1
	AfInet    = 2
	AfInet6   = 10
	AfNetlink = 16

	SockStream   = 1
	sockDatagram = 2
	sockRaw      = 3
	sockTypeMask = 0xf

	protoTCP        = 6
	fastOpenConnect = 30 // TCP_FASTOPEN_CONNECT
	protoUDP        = 17

	NetlinkRoute  = 0
	NetlinkUevent = 15
)

// networkRules decide which sockets there can be, and what the broker decides about them.
func (q *Options) networkRules() []rule {
	var rules []rule
	unixSockets := []clause{{[]test{{arg: 0, is: AfUnix}}, ActAllow}}
	if q.Peers || q.Own {
		rules = socketRules(q.Capabilities)
	}
	if q.Peers {
		unixSockets = append(noDatagrams(), unixSockets...)
	}
	switch q.Net.Mode {
	case resolve.NetNone, resolve.NetHosts:
		if q.Net.Mode == resolve.NetHosts && q.Names {
			rules = append(rules, keepRoutes(portsRules(unixSockets, true, true))...)
			break
		}
		if q.Own {
			const why = "internet sockets may be bound only in the session's network"
			rules = append(rules, refuse(actNotify, why, "bind"))
		}
		rules = append(rules, noNetworkRules(unixSockets, q.Own)...)
	case resolve.NetPorts:
		listen := len(q.Net.BindTCP) > 0 || q.Peers
		rules = append(rules, portsRules(unixSockets, listen, q.Names)...)
	default:
		rules = append(rules, openNetworkRules(unixSockets)...)
	}
	if q.Peers {
		rules = splitPairs(rules)
	}
	return rules
}

// allowNetlink allows the given protocols of AF_NETLINK. The others fail as on a kernel without
// them, since programs that write audit records treat any other error as fatal.
func allowNetlink(protocols ...uint32) []clause {
	var out []clause
	for _, p := range protocols {
		out = append(out, clause{[]test{{arg: 0, is: AfNetlink}, {arg: 2, is: p}}, ActAllow})
	}
	return append(out, clause{[]test{{arg: 0, is: AfNetlink}}, RefuseEPROTONOSUPPORT})
}

// openNetworkRules allow the internet, AF_UNIX and two protocols of AF_NETLINK. They refuse all
// other families: vsock, packet, Bluetooth, the kernel's cryptography and so on.
func openNetworkRules(unixSockets []clause) []rule {
	clauses := append(unixSockets,
		clause{[]test{{arg: 0, is: AfInet}}, ActAllow},
		clause{[]test{{arg: 0, is: AfInet6}}, ActAllow},
	)
	clauses = append(clauses, allowNetlink(NetlinkRoute, NetlinkUevent)...)
	clauses = append(clauses, clause{answer: RefuseEAFNOSUPPORT})
	return []rule{{
		calls: []string{"socket", "socketpair"}, clauses: clauses,
		when: "the family is not AF_UNIX, AF_INET, AF_INET6, or AF_NETLINK for routes and device events",
		why:  "rarely used families have many of the kernel's bugs, and some reach a virtual machine's host",
	}}
}

// noNetworkRules allow AF_UNIX only, without own. They also keep inherited or received internet sockets from
// getting another peer or kind. With own, the broker makes TCP and UDP sockets, in a network that
// has nothing but the session's own servers, and AF_NETLINK sockets that read its addresses and
// routes, as programs do that list them.
func noNetworkRules(unixSockets []clause, own bool) []rule {
	r := rule{calls: []string{"socket", "socketpair"}, when: "the family is not AF_UNIX", why: "no network"}
	detours := noDetours(nil)
	if own {
		late := []test{{arg: 1, is: protoTCP}, {arg: 2, is: fastOpenConnect}}
		detours = noDetours([]clause{{late, RefuseENOPROTOOPT}})
		last := &detours[len(detours)-1]
		last.when += " or TCP_FASTOPEN_CONNECT"
		last.why += "; zsbx can't pass on a connection that begins with the first write"
		r.why = "no network but the session's own, where zsbx makes the sockets"
		unixSockets = append(unixSockets, ownSockets(AfInet)...)
		unixSockets = append(unixSockets, ownSockets(AfInet6)...)
		routes := []test{{arg: 0, is: AfNetlink}, {arg: 2, is: NetlinkRoute}}
		unixSockets = append(unixSockets, clause{routes, actNotify})
	}
	r.clauses = append(unixSockets, clause{answer: RefuseEACCES})
	return append([]rule{r}, detours...)
}

// ownSockets hand TCP and UDP sockets of a family to the broker. Programs that try MPTCP first
// take TCP after EPROTONOSUPPORT.
func ownSockets(family uint32) []clause {
	stream := test{arg: 1, mask: sockTypeMask, is: SockStream}
	datagram := test{arg: 1, mask: sockTypeMask, is: sockDatagram}
	return []clause{
		{[]test{{arg: 0, is: family}, stream, {arg: 2, is: 0}}, actNotify},
		{[]test{{arg: 0, is: family}, stream, {arg: 2, is: protoTCP}}, actNotify},
		{[]test{{arg: 0, is: family}, stream}, RefuseEPROTONOSUPPORT},
		{[]test{{arg: 0, is: family}, datagram, {arg: 2, is: 0}}, actNotify},
		{[]test{{arg: 0, is: family}, datagram, {arg: 2, is: protoUDP}}, actNotify},
	}
}

// noDetours close the ways for a TCP socket to get a peer, or to become another kind of socket,
// without connect(2) and listen(2). TCP_FASTOPEN_CONNECT is harmless: it delays the connection
// until the first write, but its connect(2) is checked. The clauses in more are for
// setsockopt(2), too.
func noDetours(more []clause) []rule {
	const (
		fastOpen = 0x20000000 // MSG_FASTOPEN
		early    = "it connects without connect(2), which is where addresses are checked"
	)
	flags := func(arg uint8) []clause {
		return []clause{{[]test{{arg: arg, mask: fastOpen, is: fastOpen}}, RefuseEOPNOTSUPP}}
	}
	return []rule{
		{calls: []string{"sendto", "sendmmsg"}, clauses: flags(3), when: "MSG_FASTOPEN", why: early},
		{calls: []string{"sendmsg"}, clauses: flags(2), when: "MSG_FASTOPEN", why: early},
		{calls: []string{"setsockopt"},
			clauses: append([]clause{{[]test{{arg: 1, is: protoTCP}, {arg: 2, is: 31}}, RefuseENOPROTOOPT}}, more...),
			when:    "TCP_ULP", why: "it can turn a TCP socket into one that Landlock does not recognize as TCP"},
	}
}

// keepRoutes keeps the TCP sockets of the machine's network from leaving localhost, to which the broker
// connects them, and from putting off the connection.
func keepRoutes(rules []rule) []rule {
	const ip, ipv6, socket = 0, 41, 1 // levels
	options := []struct{ level, option, answer uint32 }{
		{protoTCP, fastOpenConnect, RefuseENOPROTOOPT},
		{socket, 25, RefuseEPERM}, // SO_BINDTODEVICE
		{socket, 62, RefuseEPERM}, // SO_BINDTOIFINDEX
		{ip, 4, RefuseEPERM},      // IP_OPTIONS
		{ipv6, 6, RefuseEPERM},    // IPV6_2292PKTOPTIONS
		{ipv6, 57, RefuseEPERM},   // IPV6_RTHDR
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return slices.Contains(r.calls, "setsockopt") })
	r := &rules[i]
	for _, o := range options {
		r.clauses = append(r.clauses, clause{[]test{{arg: 1, is: o.level}, {arg: 2, is: o.option}}, o.answer})
	}
	r.when += ", TCP_FASTOPEN_CONNECT, or an option that changes the route of a connection"
	r.why = "zsbx connects TCP sockets to itself, for hosts outside, and they must not go anywhere else"
	return rules
}

// portsRules allow AF_UNIX and TCP, whose ports Landlock checks. They refuse MPTCP, SCTP and
// anything that sends data before connect(2). AF_NETLINK may read routes: that sends nothing,
// and programs that list the machine's addresses fail without it. With listen, Landlock or the
// broker decides which sockets may listen.
func portsRules(unixSockets []clause, listen, names bool) []rule {
	tcp := func(family uint32) []clause {
		stream := test{arg: 1, mask: sockTypeMask, is: SockStream}
		return []clause{
			{[]test{{arg: 0, is: family}, stream, {arg: 2, is: 0}}, ActAllow},
			{[]test{{arg: 0, is: family}, stream, {arg: 2, is: protoTCP}}, ActAllow},
			{[]test{{arg: 0, is: family}, stream}, RefuseEPROTONOSUPPORT},
		}
	}
	clauses := append(unixSockets, tcp(AfInet)...)
	clauses = append(clauses, tcp(AfInet6)...)
	clauses = append(clauses, allowNetlink(NetlinkRoute)...)
	var pretended []clause
	if names {
		datagram := test{arg: 1, mask: sockTypeMask, is: sockDatagram}
		clauses = append(clauses,
			clause{[]test{{arg: 0, is: AfInet}, datagram}, actNotify},
			clause{[]test{{arg: 0, is: AfInet6}, datagram}, actNotify},
		)
		// C libraries give up if IP_RECVERR or IPV6_RECVERR fails.
		pretended = []clause{
			{[]test{{arg: 1}, {arg: 2, is: 11}}, pretendSuccess},
			{[]test{{arg: 1, is: 41}, {arg: 2, is: 25}}, pretendSuccess},
		}
	}
	rules := append([]rule{{
		calls: []string{"socket", "socketpair"}, clauses: append(clauses, clause{answer: RefuseEACCES}),
		when: "it is not AF_UNIX, TCP over AF_INET or AF_INET6, or AF_NETLINK for routes",
		why:  "only TCP can be limited to ports",
	}}, noDetours(pretended)...)
	if !listen {
		const why = "listen(2) on an unbound socket takes a port that the kernel chooses; " +
			"a filter can't tell such a socket from a Unix one, so both are refused"
		rules = append(rules, refuse(RefuseEACCES, why, "listen"))
	}
	return rules
}
