package enforce_test

import (
	"fmt"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// A plan can be made for any machine, on any machine: it is data.
func ExampleNewPlan() {
	r := &resolve.Resolved{OS: "linux", Net: resolve.ResolvedNet{
		Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: 443}},
	}}
	debian12 := enforce.Caps{OS: "linux", Arch: "amd64", Landlock: 2, Seccomp: true}
	plan := enforce.NewPlan(r, debian12, nil, enforce.Options{})
	for _, g := range plan.Gaps {
		if g.Kind == enforce.Core {
			fmt.Println(g)
		}
	}
	// Output:
	// only the TCP ports that are listed: Landlock ABI 4 (Linux 6.7) is needed, this kernel has 2 [tcp-ports]
}
