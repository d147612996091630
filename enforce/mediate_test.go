package enforce

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

func TestYamaRefuses(t *testing.T) {
	const able = 1 << seccomp.CapSysPtrace
	for _, tt := range []struct {
		scope        byte
		capabilities uint64
		want         string
	}{
		{'0', 0, ""}, {'1', 0, ""}, {'2', able, ""}, {'0', able, ""}, {'1', able, ""},
		{'2', 0, "lets only CAP_SYS_PTRACE fetch"}, {'2', able - 1, "ptrace_scope is 2"},
		{'3', 0, "lets nobody fetch"}, {'3', able, "ptrace_scope is 3"},
	} {
		if got := seccomp.YamaRefuses(tt.scope, tt.capabilities); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("scope %c, capabilities %x: %q, want %q", tt.scope, tt.capabilities, got, tt.want)
		}
	}
}

// TestPlanInheritedSockets: while there is to be no network, sockets of the
// internet that the command inherits are judged by a supervisor on every kernel,
// and by nothing less.
func TestPlanInheritedSockets(t *testing.T) {
	for abi := range landlock.MaxABI + 1 {
		for _, mode := range []policy.NetMode{policy.NetOpen, policy.NetNone, policy.NetPorts} {
			for _, notify := range []bool{false, true} {
				caps := Caps{OS: "linux", Arch: "amd64", Landlock: abi, Seccomp: true, SeccompNotify: notify, Capabilities: 1<<41 - 1}
				p := NewPlanWith(samplePolicy(mode), caps, nil, Options{Sockets: true})
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
				for _, d := range p.Seccomp.Decisions {
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

// TestToKernel: what a netlink address reaches.
func TestToKernel(t *testing.T) {
	address := func(port, groups uint32) []byte {
		b := make([]byte, 12)
		binary.NativeEndian.PutUint16(b, seccomp.AfNetlink)
		binary.NativeEndian.PutUint32(b[4:], port)
		binary.NativeEndian.PutUint32(b[8:], groups)
		return b
	}
	for _, b := range [][]byte{nil, {0}, make([]byte, 12), address(0, 0), address(0, 0)[:8], address(7, 0)[:8], append(address(0, 0), 1, 2, 3, 4)} {
		if !broker.ToKernel(b) {
			t.Errorf("%v does not reach the kernel alone", b)
		}
	}
	for _, b := range [][]byte{address(1, 0), address(0, 2), address(1<<31, 0), address(0, 1<<31), append(address(5, 0), 0)} {
		if broker.ToKernel(b) {
			t.Errorf("%v reaches the kernel alone", b)
		}
	}
}
