package policy

import (
	"fmt"
	"io/fs"
	"slices"
)

// net settles how much of the network is open. A list of ports, empty or not,
// limits the network to it whether allow is false or not said.
func (rs *resolver) net(n *Net) {
	out := &rs.r.Net
	listed := n.ConnectTCP != nil || n.BindTCP != nil
	for _, ports := range [][]Port{n.ConnectTCP, n.BindTCP} {
		for _, p := range ports {
			if p.Number == 0 {
				rs.fail(p.Origin, CodeValue, "", fmt.Errorf("port 0 is not between 1 and 65535"))
			}
		}
	}
	if n.Allow != nil && n.Allow.Origin.flag() && !slices.ContainsFunc(slices.Concat(n.ConnectTCP, n.BindTCP), func(p Port) bool { return p.Origin.flag() }) {
		listed = false // --net and --no-net mean what they say, whatever files do
	}
	if !listed {
		out.Mode, out.From = NetOpen, Origin{Source: "default"}
		if n.Allow != nil {
			out.From = n.Allow.Origin
			if !n.Allow.Value {
				out.Mode = NetNone
			}
		}
		return
	}
	out.Mode, out.ConnectTCP, out.BindTCP = NetPorts, n.ConnectTCP, n.BindTCP
	ports := append(n.ConnectTCP[:len(n.ConnectTCP):len(n.ConnectTCP)], n.BindTCP...)
	if len(ports) == 0 {
		out.Mode, out.From, out.ConnectTCP, out.BindTCP = NetNone, Origin{Source: "an empty list of ports"}, nil, nil
		return
	}
	out.From = ports[0].Origin
	if n.Allow == nil || !n.Allow.Value {
		return
	}
	// In one file "allow = true" beside a list is the list in other words.
	// Said in two files, one of the two is not what somebody meant. A flag
	// outranks what files allow.
	if !n.Allow.Origin.flag() && slices.ContainsFunc(ports, func(p Port) bool { return p.Origin.flag() }) {
		return
	}
	for _, p := range ports {
		if p.Origin.Source != n.Allow.Origin.Source {
			hint := ""
			if !n.Allow.Origin.flag() {
				hint = fmt.Sprintf("--connect-tcp %d", p.Number)
			}
			rs.fail(n.Allow.Origin, CodeContradiction, hint,
				fmt.Errorf("the whole network is allowed here, but %s limits it to port %d", p.Origin, p.Number))
			return
		}
	}
}

// sockets resolves the Unix sockets that may be connected to: a socket, or a
// directory for all sockets below.
func (rs *resolver) sockets(names []Named) {
	for _, n := range names {
		p, ok := rs.path(Rule{Path: n.Value, Optional: n.Optional, Origin: n.Origin})
		switch {
		case !ok:
		case p.Mode&(fs.ModeSocket|fs.ModeDir) == 0:
			rs.fail(n.Origin, CodeValue, "", fmt.Errorf("%s is neither a socket nor a directory", p.Written))
		default:
			rs.r.Net.Unix = append(rs.r.Net.Unix, p)
		}
	}
}
