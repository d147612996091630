package broker

import (
	"net/netip"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

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
