package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/names"
	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// What mediates connections asks the resolver what an address stands for, and the rules
// whether that is allowed. If it is, and there is a name to check, the relay takes over.
func Example() {
	allowed, err := rule.Parse("packages.example", rule.Marks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := rule.NewSet([]rule.Rule{allowed}, nil)
	resolver := names.New(names.Config{Rules: rules, Lookup: lookup})
	outside := relay.New(relay.Config{Rules: rules, Dialer: dial, Addrs: resolver.Addrs, Events: say})

	for _, name := range []string{"packages.example", "evil.example"} {
		addrs := resolver.Find(context.Background(), name).Addrs // as DNS messages are answered
		ask := resolver.Ask(addrs[0], 443)
		v := rules.Decide(ask)
		fmt.Println(addrs[0], v.Allowed())
		// With v.Rule.Direct() it would be connected as it is.
		up, err := outside.Dial(context.Background(), relay.Target{Ask: ask, Who: func() string { return "curl, pid 4711" }})
		if err == nil {
			up.Close() // or outside.Serve(client, target, up)
		}
	}
	// Output:
	// 203.0.113.1 true
	// refused: packages.example:443 (curl, pid 4711): it can't be reached: the cable is cut
	// 198.18.0.1 false
	// refused: evil.example:443 (curl, pid 4711): not in [net] hosts; to allow: --allow-host evil.example
}

// lookup asks upstream.
func lookup(context.Context, string) ([]netip.Addr, time.Duration, error) {
	return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, time.Minute, nil
}

// dial connects outside.
func dial(context.Context, string) (net.Conn, error) {
	return nil, errors.New("the cable is cut")
}

// say writes an event.
func say(e egress.Event) {
	fmt.Printf("%s: %s\n", e.Kind, e.Verdict.Line(e.Who))
}
