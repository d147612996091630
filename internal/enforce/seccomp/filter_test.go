package seccomp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// filters returns all filters that a plan can have, by name.
func filters(t *testing.T, arch string) map[string]*Filter {
	t.Helper()
	out := make(map[string]*Filter)
	for _, abi := range []int{0, 2, 3, 7, 11} {
		for name, net := range map[string]resolve.ResolvedNet{
			"open":  {Mode: resolve.NetOpen},
			"none":  {Mode: resolve.NetNone},
			"own":   {Mode: resolve.NetNone},
			"hosts": {Mode: resolve.NetHosts}, // in the machine's network with Names, else closed
			"ports": {Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: 443}}},
			"bind":  {Mode: resolve.NetPorts, BindTCP: []policy.Port{{Number: 80}}},
		} {
			f := Compile(Options{
				Arch: arch, UID: 1000, GID: 100, Net: net, Peers: abi == 7, Names: abi == 7, Own: name == "own",
				Signals: signalsIn(abi), Truncate: abi >= 3, IoctlDev: abi >= 5, UserNS: abi == 11, Pids: abi == 3,
			})
			if f == nil {
				t.Fatalf("%s abi %d %s: no filter", arch, abi, name)
			}
			out[fmt.Sprintf("%s/%d", name, abi)] = f
		}
	}
	return out
}

func arches() []string { return []string{"amd64", "arm64"} }

// answerOf returns Answer for an existing call, and checks that the program gives the same.
func answerOf(t *testing.T, f *Filter, call string, args ...uint64) string {
	t.Helper()
	var all [6]uint64
	copy(all[:], args)
	nr, ok := sysnrOf(f.Arch, call)
	got, err := machine(f.Program, seccompData(auditArch(f.Arch), nr, args...))
	if want := f.Answer(call, all); !ok || err != nil || actionName(got) != want {
		t.Fatalf("%s: the program says %s, %v, the rules %s", call, actionName(got), err, want)
	}
	return actionName(got)
}

// TestFilterEveryNumber runs each filter on each number. Calls without a decision are allowed
// without a look at the arguments, so that the kernel never runs the filter for them.
func TestFilterEveryNumber(t *testing.T) {
	for _, arch := range arches() {
		names := make(map[int]string)
		for _, s := range sysnrTable {
			if nr, ok := sysnrOf(arch, s.name); ok {
				names[int(nr)] = s.name
			}
		}
		for name, f := range filters(t, arch) {
			t.Run(arch+"/"+name, func(t *testing.T) {
				checkProgram(t, f.Program)
				decided := make(map[string]bool)
				for _, d := range f.Decisions() {
					for _, c := range d.Calls {
						decided[c] = true
					}
				}
				for nr := range LastSyscall + 200 {
					want := "allowed"
					switch {
					case nr > LastSyscall:
						want = "ENOSYS"
					case decided[names[nr]]:
						continue
					}
					got, looked := cached(f, uint32(nr))
					if actionName(got) != want || looked {
						t.Errorf("%d (%s): %s, arguments looked at: %v", nr, names[nr], actionName(got), looked)
					}
				}
			})
		}
	}
}

// cached is the kernel's own shortcut (seccomp_is_const_allow): it runs the filter with only
// the architecture and the number.
func cached(f *Filter, nr uint32) (action uint32, looked bool) {
	var acc uint32
	for pc := 0; ; pc++ {
		in := f.Program[pc]
		switch in.Code {
		case bpfLoad:
			switch in.K {
			case offsetNr:
				acc = nr
			case offsetArch:
				acc = auditArch(f.Arch)
			default:
				return 0, true
			}
		case bpfJump:
			pc += int(in.K)
		case bpfEqual:
			pc += int(pick(acc == in.K, in))
		case bpfAtLeast:
			pc += int(pick(acc >= in.K, in))
		case bpfReturn:
			return in.K, false
		}
	}
}

func TestFilterArchitectures(t *testing.T) {
	const i386, arm, x32 = 0x40000003, 0x40000028, 0x40000000
	for _, arch := range arches() {
		for name, f := range filters(t, arch) {
			for _, other := range []uint32{0, i386, arm, auditArch("amd64"), auditArch("arm64")} {
				if other == auditArch(arch) {
					continue
				}
				for _, nr := range []uint32{0, 1, 41, 102, 359, 0xffffffff} {
					if got, err := machine(f.Program, seccompData(other, nr)); err != nil || got != ActKill {
						t.Errorf("%s %s: call %d of %#x: %s, %v", arch, name, nr, other, actionName(got), err)
					}
				}
			}
			for _, nr := range []uint32{x32, x32 + 1, x32 | 41, 0x7fffffff, 0x80000000, 0xffffffff} {
				if got, err := machine(f.Program, seccompData(auditArch(arch), nr)); err != nil || got != RefuseENOSYS {
					t.Errorf("%s %s: call %#x: %s, %v", arch, name, nr, actionName(got), err)
				}
			}
		}
	}
}

// high is what a program may put into the upper half of an int argument, which the kernel
// ignores.
const high = 0xdead_beef_0000_0000

// signalsIn returns the signal mode of these tests' filters.
func signalsIn(abi int) SignalMode {
	switch abi {
	case 2:
		return SignalsAll
	case 7:
		return SignalsExist
	}
	return SignalsKernel
}

// said is a call and a filter's answer.
type said struct {
	filter string
	call   string
	args   []uint64
	want   string
}

// ptr stands for an address, pid for another process.
const (
	ptr = 0x7ffd_0000_0000
	pid = 4711
)

func TestFilterAnswers(t *testing.T) {
	tests := append(otherAnswers(), networkAnswers()...)
	for _, arch := range arches() {
		all := filters(t, arch)
		for _, tt := range tests {
			if got := answerOf(t, all[tt.filter], tt.call, tt.args...); got != tt.want {
				t.Errorf("%s %s: %s(%#x) = %s, want %s", arch, tt.filter, tt.call, tt.args, got, tt.want)
			}
		}
	}
}

// TestFilterRulesApart checks that no two rules name the same call, since the second would have
// no effect.
func TestFilterRulesApart(t *testing.T) {
	for _, arch := range arches() {
		for name, f := range filters(t, arch) {
			var seen []string
			for _, d := range f.Decisions() {
				for _, c := range d.Calls {
					if slices.Contains(seen, c) {
						t.Errorf("%s %s: %s is decided twice", arch, name, c)
					}
					seen = append(seen, c)
				}
				if strings.Contains(d.Answer, "?") || d.Answer == "" || d.Why == "" {
					t.Errorf("%s %s: %+v", arch, name, d)
				}
			}
		}
	}
}

func TestFilterUnknownMachine(t *testing.T) {
	for _, arch := range []string{"", "riscv64", "386"} {
		if f := Compile(Options{Arch: arch}); f != nil {
			t.Errorf("%q has a filter", arch)
		}
	}
}

// FuzzFilter runs every filter on any call. Each run ends with a known answer.
func FuzzFilter(f *testing.F) {
	f.Add(uint32(0xc000003e), uint32(41), uint64(2), uint64(1), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, arch, nr uint32, a, b, c, d uint64) {
		for _, machineName := range arches() {
			for name, filter := range filters(t, machineName) {
				got, err := machine(filter.Program, seccompData(arch, nr, a, b, c, d))
				if err != nil || actionName(got) == "?" {
					t.Errorf("%s: %#x, %v", name, got, err)
				}
			}
		}
	})
}
