package seccomp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/policy"
)

// filters are all filters that a plan can hold, by name.
func filters(t *testing.T, arch string) map[string]*Filter {
	t.Helper()
	out := make(map[string]*Filter)
	for _, abi := range []int{0, 2, 3, 7, 11} {
		for name, net := range map[string]policy.ResolvedNet{
			"open":  {Mode: policy.NetOpen},
			"none":  {Mode: policy.NetNone},
			"ports": {Mode: policy.NetPorts, ConnectTCP: []policy.Port{{Number: 443}}},
			"bind":  {Mode: policy.NetPorts, BindTCP: []policy.Port{{Number: 80}}},
		} {
			f := Compile(Options{Arch: arch, UID: 1000, GID: 100, Net: net, Peers: abi == 7, Names: abi == 7, Signals: signalsIn(abi), Truncate: abi >= 3, UserNS: abi == 11})
			if f == nil {
				t.Fatalf("%s abi %d %s: no filter", arch, abi, name)
			}
			out[fmt.Sprintf("%s/%d", name, abi)] = f
		}
	}
	return out
}

func arches() []string { return []string{"amd64", "arm64"} }

// answerOf is Answer for a call that there is.
func answerOf(t *testing.T, f *Filter, call string, args ...uint64) string {
	t.Helper()
	got, err := f.Answer(call, args...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFilterEveryNumber runs each filter on each number: what no decision
// names is allowed, and needs no look at its arguments, so that the kernel
// never runs the filter for it.
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
				for _, d := range f.Decisions {
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

// cached is the kernel's own shortcut (seccomp_is_const_allow): it runs the
// filter with nothing but architecture and number.
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

// high is what a program may put into the upper half of an int argument; the
// kernel doesn't look at it.
const high = 0xdead_beef_0000_0000

// said is a call and what a filter says to it.
// signalsIn is the mode of the filters of these tests.
func signalsIn(abi int) SignalMode {
	switch abi {
	case 2:
		return SignalsAll
	case 7:
		return SignalsExist
	}
	return SignalsKernel
}

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

func otherAnswers() []said {
	const cloexec = 0o2000000
	return []said{
		{"open/11", "io_uring_setup", nil, "ENOSYS"},
		{"open/11", "clone3", []uint64{ptr, 88}, "ENOSYS"},
		{"open/11", "bpf", nil, "EPERM"},
		{"open/11", "unshare", []uint64{0x10000000}, "EPERM"},
		{"open/11", "unshare", []uint64{0x10020000 | high}, "EPERM"},
		{"open/11", "unshare", []uint64{0x200}, "allowed"},
		{"open/11", "clone", []uint64{0x10000011}, "EPERM"},
		{"open/11", "clone", []uint64{0x3d0f00}, "allowed"},
		{"open/11", "keyctl", []uint64{0}, "EPERM"},
		{"open/11", "mount", nil, "EPERM"},
		{"open/11", "open_tree", nil, "EPERM"},
		{"open/11", "ioctl", []uint64{0, 0x5412}, "EPERM"},
		{"open/11", "ioctl", []uint64{0, 0x5412 | high}, "EPERM"},
		{"open/11", "ioctl", []uint64{0, 0x541c | 1<<32}, "EPERM"},
		{"open/11", "ioctl", []uint64{0, 0x5423}, "EPERM"},
		{"open/11", "ioctl", []uint64{0x5412, 0x5413}, "allowed"},
		{"open/11", "fcntl", []uint64{3, 1024, 1}, "EACCES"},
		{"open/11", "fcntl", []uint64{3, 1024 | high, 1}, "EACCES"},
		{"open/11", "fcntl", []uint64{1024, 6, ptr}, "allowed"},
		{"open/11", "fcntl", []uint64{3, 8, pid}, "allowed"},
		{"open/11", "fcntl", []uint64{3, 8, 0xffffed99}, "EPERM"},
		{"open/11", "fcntl", []uint64{3, 8 | high, 0xffffed99 | high}, "EPERM"},
		{"open/11", "fcntl", []uint64{3, 15, ptr}, "EPERM"},
		{"open/11", "fcntl", []uint64{3, 10, 9}, "EPERM"},
		{"open/11", "fcntl", []uint64{3, 10, high}, "allowed"},
		{"open/11", "fcntl", []uint64{3, 4, 0o24000}, "EPERM"},
		{"open/11", "fcntl", []uint64{3, 4, 0o4000}, "allowed"},
		{"open/2", "fcntl", []uint64{3, 8, pid}, "decided by the supervisor"},
		{"open/2", "fcntl", []uint64{3, 8, high}, "allowed"},
		{"open/11", "ioctl", []uint64{3, 0x8901 | high, ptr}, "EPERM"},
		{"open/11", "ioctl", []uint64{3, 0x8902, ptr}, "EPERM"},
		{"open/11", "ioctl", []uint64{3, 0x5452, ptr}, "success, without effect"},
		{"open/11", "ioctl", []uint64{3, 0xc0506617, ptr}, "EPERM"},
		{"open/11", "ioctl", []uint64{3, 0xc0406618 | high, ptr}, "EPERM"},
		{"open/11", "ioctl", []uint64{3, 0xc0406619, ptr}, "EPERM"},
		{"open/11", "ioctl", []uint64{3, 0xc040661a, ptr}, "allowed"}, // FS_IOC_GET_ENCRYPTION_KEY_STATUS
		{"open/11", "kill", []uint64{pid, 0}, "allowed"},
		{"open/7", "kill", []uint64{pid, 0}, "decided by the supervisor"},
		{"open/7", "kill", []uint64{pid | high, high}, "decided by the supervisor"},
		{"open/7", "kill", []uint64{0xffffffff | high, 0}, "allowed"},
		{"open/7", "kill", []uint64{0xffffed99, 0}, "decided by the supervisor"},
		{"open/7", "kill", []uint64{pid, 9}, "allowed"},
		{"open/7", "tgkill", []uint64{pid, pid, high}, "decided by the supervisor"},
		{"open/7", "tkill", []uint64{pid, 0}, "decided by the supervisor"},
		{"open/7", "pidfd_send_signal", []uint64{3, 0}, "decided by the supervisor"},
		{"open/7", "pidfd_send_signal", []uint64{0xffffd8ef, 0}, "allowed"},
		{"open/7", "rt_sigqueueinfo", []uint64{pid, 0}, "allowed"},
		{"open/2", "kill", []uint64{pid, 0}, "allowed"},
		{"open/2", "kill", []uint64{0, 15}, "decided by the supervisor"},
		{"open/2", "kill", []uint64{pid, 9 | high}, "decided by the supervisor"},
		{"open/2", "rt_sigqueueinfo", []uint64{pid, 9, ptr}, "decided by the supervisor"},
		{"open/2", "rt_tgsigqueueinfo", []uint64{pid, pid, 9, ptr}, "decided by the supervisor"},
		{"open/2", "tgkill", []uint64{pid, pid, 9}, "decided by the supervisor"},
		{"open/2", "pidfd_send_signal", []uint64{3, 9}, "decided by the supervisor"},
		{"open/11", "fchown", []uint64{3, 1000, 100}, "allowed"},
		{"open/11", "fchown", []uint64{3, 1000 | high, 0xffffffff}, "allowed"},
		{"open/11", "fchown", []uint64{3, 0xffffffff | high, 100}, "allowed"},
		{"open/11", "fchown", []uint64{3, 0, 100}, "EPERM"},
		{"open/11", "fchown", []uint64{3, 1000, 65534}, "EPERM"},
		{"open/11", "fchownat", []uint64{3, ptr, 1000, 100, 0}, "allowed"},
		{"open/11", "fchownat", []uint64{3, ptr, 0xffffffff, 0, 0}, "EPERM"},
		{"open/11", "fchownat", []uint64{3, ptr, high, 100, 0}, "EPERM"},
		{"open/7", "fchown", []uint64{3, 0, 0}, "allowed"},
		{"open/11", "prlimit64", []uint64{0, 7, ptr, 0}, "allowed"},
		{"open/11", "prlimit64", []uint64{high, 7, ptr, 0}, "allowed"},
		{"open/11", "prlimit64", []uint64{pid, 7, 0, ptr}, "allowed"},
		{"open/11", "prlimit64", []uint64{pid, 7, ptr, 0}, "EPERM"},
		{"open/11", "prlimit64", []uint64{pid, 7, 1 << 32, 0}, "EPERM"},
		{"open/11", "prlimit64", []uint64{pid | high, 7, 4, 0}, "EPERM"},
		{"open/11", "sched_setaffinity", []uint64{0, 8, ptr}, "allowed"},
		{"open/11", "sched_setaffinity", []uint64{pid, 8, ptr}, "EPERM"},
		{"open/11", "sched_setattr", []uint64{pid}, "EPERM"},
		{"open/11", "setpriority", []uint64{0, 0, 10}, "allowed"},
		{"open/11", "setpriority", []uint64{0, pid, 10}, "EPERM"},
		{"open/11", "setpriority", []uint64{1, 0, 10}, "EPERM"},
		{"open/11", "setpriority", []uint64{2, 0, 10}, "EPERM"},
		{"open/11", "ioprio_set", []uint64{1, 0, 3}, "allowed"},
		{"open/11", "ioprio_set", []uint64{1, pid, 3}, "EPERM"},
		{"open/11", "ioprio_set", []uint64{3, 0, 3}, "EPERM"},
		{"open/11", "move_pages", []uint64{0}, "allowed"},
		{"open/11", "move_pages", []uint64{pid}, "EPERM"},

		{"open/11", "truncate", nil, "allowed"},
		{"open/11", "openat", []uint64{0, 0, 0o1000}, "allowed"},
		{"open/3", "openat2", nil, "allowed"},
		{"open/2", "openat2", nil, "ENOSYS"},
		{"open/2", "truncate", nil, "EACCES"},
		{"open/2", "openat", []uint64{0, 0, 0}, "allowed"},
		{"open/2", "openat", []uint64{0, 0, 0o1000}, "EACCES"},
		{"open/2", "openat", []uint64{0, 0, 0o1000 | high}, "EACCES"},
		{"open/2", "openat", []uint64{0, 0, 0o1001}, "allowed"},
		{"open/2", "openat", []uint64{0, 0, 0o1002 | cloexec}, "allowed"},
		{"open/2", "openat", []uint64{0, 0, 0o1003}, "EACCES"},
		{"open/2", "openat", []uint64{0, 0, 0o3}, "allowed"},
		{"open/2", "openat", []uint64{0o1000, 0o1000, 0o101}, "allowed"},
	}
}

func networkAnswers() []said {
	const (
		stream   = 1
		dgram    = 2
		raw      = 3
		cloexec  = 0o2000000
		nonblock = 0o4000
		notify   = "decided by the supervisor"
	)
	return []said{
		{"open/11", "socket", []uint64{AfInet, stream, 262}, "allowed"},
		{"open/11", "socket", []uint64{AfInet6, dgram}, "allowed"},
		{"open/11", "socket", []uint64{AfUnix, dgram}, "allowed"},
		{"open/11", "socket", []uint64{AfNetlink, raw, 0}, "allowed"},
		{"open/11", "socket", []uint64{AfNetlink, raw, 9}, "EPROTONOSUPPORT"},
		{"open/11", "socket", []uint64{40, stream}, "EAFNOSUPPORT"},
		{"open/11", "socket", []uint64{17, raw}, "EAFNOSUPPORT"},
		{"open/11", "socket", []uint64{38 | high, raw}, "EAFNOSUPPORT"},
		{"open/11", "sendto", []uint64{3, ptr, 1, 0x20000000}, "allowed"},

		{"none/11", "socket", []uint64{AfUnix, stream | cloexec}, "allowed"},
		{"none/11", "socket", []uint64{AfUnix | high, stream}, "allowed"},
		{"none/11", "socketpair", []uint64{AfUnix, stream}, "allowed"},
		{"none/11", "socket", []uint64{AfInet, stream}, "EACCES"},
		{"none/11", "socket", []uint64{AfInet | 1<<32, stream}, "EACCES"},
		{"none/11", "socket", []uint64{AfInet6, stream}, "EACCES"},
		{"none/11", "socket", []uint64{AfNetlink, raw}, "EACCES"},
		{"none/11", "socket", []uint64{0, raw}, "EACCES"},
		{"none/11", "listen", []uint64{3, 5}, "allowed"},

		{"ports/11", "socket", []uint64{AfInet, stream, 0}, "allowed"},
		{"ports/11", "socket", []uint64{AfInet | high, stream | cloexec | nonblock | high, 6 | high}, "allowed"},
		{"ports/11", "socket", []uint64{AfInet6, stream, 6}, "allowed"},
		{"ports/11", "socket", []uint64{AfInet, stream, 262}, "EPROTONOSUPPORT"},
		{"ports/11", "socket", []uint64{AfInet6, stream, 132}, "EPROTONOSUPPORT"},
		{"ports/11", "socket", []uint64{AfInet, dgram, 0}, "EACCES"},
		{"ports/11", "socket", []uint64{AfInet, raw, 1}, "EACCES"},
		{"ports/11", "socket", []uint64{AfInet, 5, 132}, "EACCES"},
		{"ports/11", "socket", []uint64{AfUnix, dgram}, "allowed"},
		{"ports/11", "socket", []uint64{AfNetlink, raw, 0}, "allowed"},
		{"ports/11", "socket", []uint64{AfNetlink, raw, 4}, "EPROTONOSUPPORT"},
		{"ports/11", "socket", []uint64{43, stream}, "EACCES"},
		{"ports/11", "sendto", []uint64{3, ptr, 1, 0x20000000}, "EOPNOTSUPP"},
		{"ports/11", "sendto", []uint64{3, ptr, 1, 0x20004000 | high}, "EOPNOTSUPP"},
		{"ports/11", "sendto", []uint64{3, ptr, 1, 0x4000}, "allowed"},
		{"ports/11", "sendmsg", []uint64{3, ptr, 0x20000000}, "EOPNOTSUPP"},
		{"ports/11", "sendmsg", []uint64{3, ptr, 0, 0x20000000}, "allowed"},
		{"ports/11", "sendmmsg", []uint64{3, ptr, 1, 0x20000000}, "EOPNOTSUPP"},
		{"ports/11", "setsockopt", []uint64{3, 6, 31}, "ENOPROTOOPT"},
		{"ports/11", "setsockopt", []uint64{3, 6, 1}, "allowed"},
		{"ports/11", "setsockopt", []uint64{3, 1, 31}, "allowed"},
		{"ports/11", "listen", []uint64{3, 5}, "EACCES"},
		{"bind/11", "listen", []uint64{3, 5}, "allowed"},
		{"none/11", "connect", []uint64{3, ptr, 110}, "allowed"},

		{"open/7", "connect", []uint64{3, ptr, 110}, notify},
		{"none/7", "connect", []uint64{3, ptr, 110}, notify},
		{"ports/7", "listen", []uint64{3, 5}, notify},
		{"bind/7", "listen", []uint64{3, 5}, notify},
		{"open/7", "socket", []uint64{AfUnix, stream}, "allowed"},
		{"open/7", "socket", []uint64{AfUnix, 5 | cloexec}, "allowed"},
		{"open/7", "socket", []uint64{AfUnix, dgram | cloexec | nonblock | high}, "ESOCKTNOSUPPORT"},
		{"none/7", "socket", []uint64{AfUnix | high, raw}, "ESOCKTNOSUPPORT"},
		{"ports/7", "socketpair", []uint64{AfUnix, dgram}, "ESOCKTNOSUPPORT"},
		{"open/7", "socket", []uint64{AfInet, dgram}, "allowed"},
		{"open/7", "prctl", []uint64{4, 0}, "success, without effect"},
		{"open/7", "prctl", []uint64{4, 1}, "allowed"},
		{"open/7", "prctl", []uint64{4, high}, "allowed"},
		{"open/7", "prctl", []uint64{3}, "allowed"},
	}
}

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

// TestFilterRulesApart makes sure that no call is named by two rules, of
// which the second would do nothing.
func TestFilterRulesApart(t *testing.T) {
	for _, arch := range arches() {
		for name, f := range filters(t, arch) {
			var seen []string
			for _, d := range f.Decisions {
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

// FuzzFilter runs every filter on any call: each ends with one of the answers
// that are known.
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
