package enforce

import (
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/policy"
)

// TestPlanInheritedSockets: while there is to be no network, sockets of the
// internet that the command inherits are checked by a supervisor on every kernel,
// and by nothing less.
func TestPlanInheritedSockets(t *testing.T) {
	for abi := range landlock.MaxABI + 1 {
		for _, mode := range []policy.NetMode{policy.NetOpen, policy.NetNone, policy.NetPorts} {
			for _, notify := range []bool{false, true} {
				caps := Caps{OS: "linux", Arch: "amd64", Landlock: abi, Seccomp: true, SeccompNotify: notify, Capabilities: 1<<41 - 1}
				p := NewPlan(samplePolicy(mode), caps, nil, Options{Sockets: true})
				want := notify && (abi < 9 || mode == policy.NetNone)
				if got := p.Mediation.Mediates(); got != want {
					t.Errorf("abi %d, %v, supervisor %v: mediated %v", abi, mode, notify, got)
				}
				if !p.Mediation.Mediates() {
					continue
				}
				if m := p.Mediation; !m.Sockets || m.Capabilities != caps.Capabilities&^p.DropCapabilities || m.Capabilities&(1<<12) != 0 {
					t.Errorf("abi %d, %v: %+v", abi, mode, m)
				}
				notified := 0
				for _, d := range p.Seccomp.Decisions() {
					if strings.Contains(d.Answer, "supervisor") && (slices.Contains(d.Calls, "connect") || slices.Contains(d.Calls, "listen")) {
						notified += len(d.Calls)
					}
				}
				if notified != 2 {
					t.Errorf("abi %d, %v: %d calls are handed over", abi, mode, notified)
				}
			}
		}
	}
}
