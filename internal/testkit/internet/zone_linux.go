package internet

import (
	"net/netip"
	"strings"
	"sync"
)

// The addresses of the machine in this internet. A test names some of them.
const (
	NameServer = "203.0.113.1"  // the one in resolv.conf
	Proxy      = "203.0.113.3"  // port 3128
	Shared     = "203.0.113.80" // a.example, b.example and evil.example have it, as at a content network
	Other      = "203.0.113.81"
	Stranger   = "8.8.8.8" // another name server
)

// addresses are those that the loopback device gets. The first is a whole network.
var addresses = []string{
	"203.0.113.1/24", "198.51.100.66/32", "8.8.8.8/32", "10.38.140.27/32", "10.0.0.1/32", "169.254.169.254/32",
	"2001:db8::80/128", "2001:db8::66/128",
}

// listeners are the addresses that datagrams to each port are read at.
var listeners = []string{
	"127.0.0.1", NameServer, Proxy, Shared, Other, "198.51.100.66", Stranger,
	"10.38.140.27", "10.0.0.1", "169.254.169.254",
	"::1", "2001:db8::80", "2001:db8::66",
}

// zone has the names. "*." is any depth.
var zone = map[string][]string{
	"a.example":        {Shared, "2001:db8::80"},
	"b.example":        {Shared, "2001:db8::80"},
	"evil.example":     {Shared, "2001:db8::80"},
	"*.evil.example":   {"198.51.100.66"},
	"four.example":     {Shared},
	"wild.example":     {Other},
	"*.wild.example":   {Other},
	"ssh.example":      {"203.0.113.22"},
	"slow.example":     {"203.0.113.90"},
	"hole.example":     {"203.0.113.91"},
	"proxy.example":    {Proxy},
	"eyes.example":     {"2001:db8:dead::1", Shared}, // no route to the first
	"many.example":     {"192.0.2.1", "192.0.2.2", Shared},
	"corp.example":     {"10.38.140.27"},
	"in127.example":    {"127.0.0.1"},
	"in10.example":     {"10.0.0.1"},
	"metadata.example": {"169.254.169.254"},
	"in6.example":      {"::1"},
	"mapped.example":   {"::ffff:10.0.0.1"},
	"*.behind.example": {Other}, // known to the proxy only
}

// moving has the names whose address is another one after the first question for it.
var moving = map[string][2]string{
	"moves.example":   {Shared, Other},
	"rebinds.example": {Shared, "10.0.0.1"},
}

var moved struct {
	sync.Mutex
	asked map[string]bool
}

// find returns a name's addresses. ask says whether the question moves a name that moves.
func find(name string, ask bool) []netip.Addr {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if to, is := moving[name]; is {
		moved.Lock()
		defer moved.Unlock()
		now := to[0]
		if moved.asked[name] {
			now = to[1]
		}
		if moved.asked == nil {
			moved.asked = map[string]bool{}
		}
		moved.asked[name] = moved.asked[name] || ask
		return []netip.Addr{netip.MustParseAddr(now)}
	}
	addrs, is := zone[name]
	for rest := name; !is && rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		addrs, is = zone["*."+rest]
	}
	var out []netip.Addr
	for _, a := range addrs {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}
