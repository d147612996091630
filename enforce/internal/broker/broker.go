package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// Policy says what is answered for a command where the kernel can't decide. docs/linux.md
// says how and why.
type Policy struct {
	Net   policy.ResolvedNet
	Names []netip.Addr // with policy.NetPorts, the name servers that may be asked, by UDP and TCP

	Peers   bool               // connect(2) and listen(2) are answered
	Signals seccomp.SignalMode //

	// Capabilities are those that the command may have, of capabilities(7):
	// whatever is done for it is done without any other.
	Capabilities uint64
}

// Mediates reports whether a mediation is about the peers of sockets.
func (m *Policy) Mediates() bool { return m != nil && m.Peers }

// unixAddress says what an AF_UNIX address names, as the kernel reads it (unix(7)): a
// path ends at the first NUL byte or with the address, an abstract name is all of the
// address, with the NUL byte that it begins with. Of others, and one that names nothing,
// both are "".
func unixAddress(b []byte) (path, abstract string) {
	switch {
	case len(b) < 3 || binary.NativeEndian.Uint16(b) != seccomp.AfUnix:
		return "", ""
	case b[2] == 0:
		return "", string(b[2:])
	}
	name, _, _ := bytes.Cut(b[2:], []byte{0})
	return string(name), ""
}

// internetAddress is an AF_INET or AF_INET6 address. One with a scope has a zone.
func internetAddress(b []byte) (to netip.AddrPort, ok bool) {
	var a netip.Addr
	switch {
	case len(b) >= 16 && binary.NativeEndian.Uint16(b) == seccomp.AfInet:
		a, ok = netip.AddrFromSlice(b[4:8])
	case len(b) >= 28 && binary.NativeEndian.Uint16(b) == seccomp.AfInet6:
		if a, ok = netip.AddrFromSlice(b[8:24]); binary.NativeEndian.Uint32(b[24:]) != 0 {
			a = a.WithZone("scope")
		}
	default:
		return to, false
	}
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(b[2:])), ok
}

// mayConnect reports whether a socket of the internet may be connected to an
// address. A connection to no address (AF_UNSPEC) is the end of one.
func (m *Policy) mayConnect(b []byte) bool {
	ends := len(b) < 2 || binary.NativeEndian.Uint16(b) == 0
	return m.Net.Mode == policy.NetPorts && ends || m.mayUse(b, m.Net.ConnectTCP) || m.mayAsk(b)
}

// mayUse reports whether the network mode allows an address, whose port is to be one of
// those that are listed.
func (m *Policy) mayUse(b []byte, listed []policy.Port) bool {
	to, ok := internetAddress(b)
	return m.Net.Mode == policy.NetOpen || m.Net.Mode == policy.NetPorts && ok && policy.Lists(listed, to.Port())
}

// mayAsk reports whether an address is that of a name server.
func (m *Policy) mayAsk(b []byte) bool {
	const domain = 53
	to, ok := internetAddress(b)
	return ok && to.Port() == domain && slices.Contains(m.Names, to.Addr())
}

// String is what a plan says about the mediation, for people.
func (m *Policy) String() string {
	allowed := "none outside"
	if n := len(m.Net.Unix); n > 0 {
		allowed = fmt.Sprintf("%d outside allowed", n)
	}
	return "connect(2) and listen(2) are answered by zsbx: Unix sockets of the session's own processes, " +
		allowed + "; no Unix datagram sockets"
}

// NameServers are those that the machine's resolver asks (resolv.conf(5)): as many of
// them as glibc does. One with a scope is left out.
func NameServers(host *policy.Host) []netip.Addr {
	if host == nil || host.ReadFile == nil {
		return nil
	}
	const most = 3
	var out []netip.Addr
	text, _ := host.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" || len(out) == most {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil && a.Zone() == "" {
			out = append(out, a.Unmap())
		}
	}
	return out
}
