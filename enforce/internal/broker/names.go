package broker

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// NameServers are those that the machine's resolver asks (resolv.conf(5)): as many of
// them as glibc does. One with a scope is left out.
func NameServers(host *policy.Host) []netip.Addr {
	if host == nil || host.ReadFile == nil {
		return nil
	}
	text, err := host.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	const most = 3
	var out []netip.Addr
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

// internetAddress is an AF_INET or AF_INET6 address. One with a scope is none.
func internetAddress(b []byte) (netip.AddrPort, bool) {
	port, ok := internetPort(b)
	switch {
	case !ok:
	case binary.NativeEndian.Uint16(b) == seccomp.AfInet && len(b) >= 16:
		a, _ := netip.AddrFromSlice(b[4:8])
		return netip.AddrPortFrom(a, port), true
	case binary.NativeEndian.Uint16(b) == seccomp.AfInet6 && len(b) >= 28 && binary.NativeEndian.Uint32(b[24:]) == 0:
		a, _ := netip.AddrFromSlice(b[8:24])
		return netip.AddrPortFrom(a.Unmap(), port), true
	}
	return netip.AddrPort{}, false
}

// mayAsk reports whether an address is that of a name server.
func (m *Policy) mayAsk(b []byte) bool {
	const domain = 53
	a, ok := internetAddress(b)
	return ok && a.Port() == domain && slices.Contains(m.Names, a.Addr())
}
