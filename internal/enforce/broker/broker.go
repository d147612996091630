package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Policy says how the broker answers a command's calls where the kernel can't decide. See
// docs/linux.md.
type Policy struct {
	Net   resolve.ResolvedNet
	Names []netip.Addr // the name servers that may be asked by UDP and TCP; for resolve.NetPorts

	Peers   bool               // the broker answers connect(2) and listen(2) for all sockets
	Own     bool               // it answers for the sockets of the session's network
	Hosts   *hosts.Config      // which hosts outside may be reached, with Own or Peers; nil for none
	Signals seccomp.SignalMode // which signals the broker answers

	// Capabilities are those that the command may have (capabilities(7)). The broker uses no
	// others when it acts for the command.
	Capabilities uint64
}

// ChecksSockets reports whether the broker decides about the peers of sockets.
func (p *Policy) ChecksSockets() bool { return p != nil && p.Peers }

// unixAddress returns the path or the abstract name in an AF_UNIX address, as the kernel reads
// it (unix(7)). A path ends at the first NUL byte or at the end of the address. An abstract
// name is all of the address, including its leading NUL byte. Both results are "" for other
// families and for an address without a name.
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

// internetAddress parses an AF_INET or AF_INET6 address. If the address has a scope, the result
// has a zone.
func internetAddress(b []byte) (to netip.AddrPort, ok bool) {
	var a netip.Addr
	switch {
	case len(b) >= 16 && binary.NativeEndian.Uint16(b) == seccomp.AfInet:
		a, ok = netip.AddrFromSlice(b[4:8])
	case len(b) >= 28 && binary.NativeEndian.Uint16(b) == seccomp.AfInet6:
		a, ok = netip.AddrFromSlice(b[8:24])
		if binary.NativeEndian.Uint32(b[24:]) != 0 {
			a = a.WithZone("scope")
		}
	default:
		return to, false
	}
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(b[2:])), ok
}

// mayConnect reports whether an internet socket may be connected to an address. AF_UNSPEC ends
// a connection. With resolve.NetHosts only the relay connects to others.
func (p *Policy) mayConnect(b []byte) bool {
	ends := len(b) < 2 || binary.NativeEndian.Uint16(b) == 0
	if p.Net.Mode == resolve.NetHosts {
		return ends
	}
	return p.Net.Mode == resolve.NetPorts && ends || p.mayUse(b, p.Net.ConnectTCP) || p.mayAsk(b)
}

// mayUse reports whether the network mode allows an address. With resolve.NetPorts and
// resolve.NetHosts its port must be listed.
func (p *Policy) mayUse(b []byte, listed []policy.Port) bool {
	to, ok := internetAddress(b)
	switch p.Net.Mode {
	case resolve.NetOpen:
		return true
	case resolve.NetPorts, resolve.NetHosts:
		return ok && resolve.Lists(listed, to.Port())
	}
	return false
}

// domain is the port of name servers.
const domain = 53

// mayAsk reports whether an address belongs to a name server that may be asked.
func (p *Policy) mayAsk(b []byte) bool {
	to, ok := internetAddress(b)
	return ok && to.Port() == domain && slices.Contains(p.Names, to.Addr())
}

// String says in a plan what the broker answers, for people.
func (p *Policy) String() string {
	allowed := "none outside"
	if n := len(p.Net.Unix); n > 0 {
		allowed = fmt.Sprintf("%d outside allowed", n)
	}
	return "connect(2) and listen(2) are answered by zsbx: Unix sockets of the session's own processes, " +
		allowed + "; Unix datagram sockets only as pairs"
}

// NameServers returns the servers in resolv.conf(5) that glibc asks, which are the first three.
// It leaves out addresses with a scope.
func NameServers(h *host.Host) []netip.Addr {
	if h == nil {
		return nil
	}
	const most = 3
	var out []netip.Addr
	text, _ := h.ReadFile("/etc/resolv.conf") // harmless: without name servers no name is resolved, which is said
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
