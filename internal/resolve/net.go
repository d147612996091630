package resolve

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// net decides how much of the network is open. A list of ports or hosts, empty or not, limits the
// network to these, whether allow is "false" or not set.
func (rs *resolver) net(n *policy.Net) {
	out := &rs.r.Net
	ports := slices.Concat(n.ConnectTCP, n.BindTCP)
	byFlag := slices.ContainsFunc(ports, func(p policy.Port) bool { return fromFlag(p.Origin) }) ||
		slices.ContainsFunc(n.Hosts, func(h policy.Host) bool { return fromFlag(h.Origin) })
	for _, p := range ports {
		if p.Number == 0 {
			rs.fail(p.Origin, policy.CodeValue, "", "port 0 is not between 1 and 65535")
		}
	}
	allow := n.Allow
	outranked := fromFlag(allow.Origin) && !byFlag // --net and --no-net outrank files
	switch {
	case n.Hosts != nil && !outranked:
		rs.hosts(n, byFlag)
		return
	case n.ConnectTCP == nil && n.BindTCP == nil, outranked:
		out.Mode = NetOpen
		out.From = cmp.Or(allow.Origin, policy.Origin{Source: "default"})
		if allow.Value == "false" {
			out.Mode = NetNone
		}
		if !outranked {
			rs.noHosts(n.DenyHosts)
		}
		return
	}
	rs.noHosts(n.DenyHosts)
	if len(ports) == 0 {
		out.Mode = NetNone
		out.From = policy.Origin{Source: "an empty list of ports"}
		return
	}
	out.Mode = NetPorts
	out.From = ports[0].Origin
	out.ConnectTCP = n.ConnectTCP
	out.BindTCP = n.BindTCP
	// In one file "allow = true" beside a list means the list. In two files the
	// two contradict each other. A flag outranks what files allow.
	other := slices.IndexFunc(ports, func(p policy.Port) bool { return p.Origin.Source != allow.Origin.Source })
	if allow.Value == "true" && byFlag == fromFlag(allow.Origin) && other >= 0 {
		rs.fail(allow.Origin, policy.CodeContradiction, fmt.Sprintf("--connect-tcp %d", ports[other].Number),
			fmt.Sprintf("the whole network is allowed here, but %s limits it to port %d", ports[other].Origin,
				ports[other].Number))
	}
}

// sockets resolves the Unix sockets that may be connected to: a socket, or a
// directory for all sockets below.
func (rs *resolver) sockets(names []policy.Named) {
	for _, n := range names {
		p, ok := rs.path(policy.Rule{Path: n.Value, Optional: n.Optional, Origin: n.Origin})
		switch {
		case !ok:
		case p.Mode&(fs.ModeSocket|fs.ModeDir) == 0:
			rs.fail(n.Origin, policy.CodeValue, "", fmt.Sprintf("%s is neither a socket nor a directory", p.Written))
		default:
			rs.r.Net.Unix = append(rs.r.Net.Unix, p)
		}
	}
}
