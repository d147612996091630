package attack_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// refuseCalls makes system calls of this process fail with EPERM, as the filter
// of a container does.
func refuseCalls(numbers ...uint32) error { return failCalls(unix.EPERM, numbers...) }

// failCalls makes system calls of this process fail.
func failCalls(with unix.Errno, numbers ...uint32) error {
	const load, jumpEqual, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{{Code: load}}
	for i, nr := range numbers {
		filter = append(filter, unix.SockFilter{Code: jumpEqual, Jt: uint8(len(numbers) - i), K: nr})
	}
	filter = append(filter, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(with)})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return then(func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, func() error {
		return raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	})
}

// planIn returns a plan for this program with a writable dir and some allowed sockets.
func planIn(dir string, opts enforce.Options, sockets ...string) (exe string, _ *enforce.Plan, _ error) {
	return planWith(resolve.NetOpen, dir, opts, sockets...)
}

func planWith(mode resolve.NetMode, dir string, opts enforce.Options, sockets ...string) (exe string, _ *enforce.Plan, _ error) {
	exe, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	r := &resolve.Resolved{OS: "linux", Dir: dir, Net: resolve.ResolvedNet{Mode: mode}}
	for _, path := range append([]string{"/usr", "/etc", "/proc", exe, dir}, sockets...) {
		id, mode, access := unix.Stat_t{}, os.FileMode(0), policy.Read|policy.Exec
		if err := unix.Lstat(path, &id); err != nil {
			return "", nil, err
		}
		p := resolve.Path{Path: path, ID: host.FileID{Dev: id.Dev, Ino: id.Ino}}
		if slices.Contains(sockets, path) {
			p.Mode = os.ModeSocket
			r.Net.Unix = append(r.Net.Unix, p)
			continue
		}
		if path != exe {
			mode = os.ModeDir
		}
		if path == dir {
			access |= policy.Write
		}
		p.Access, p.Mode = access, mode
		r.Paths = append(r.Paths, p)
	}
	caps := enforce.Probe()
	caps.MountNS = false
	return exe, enforce.NewPlan(r, caps, thisHost(), opts), nil
}

// inContainer makes an act in a confined process where sockets can't be fetched. EBADE means
// that the plan does not say so.
func inContainer(a []string) error {
	if err := refuseCalls(unix.SYS_PIDFD_GETFD); err != nil {
		return err
	}
	exe, plan, err := planIn(a[0], enforce.Options{})
	if err != nil {
		return err
	}
	named := slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool {
		return g.Name == enforce.GapUnixSockets && strings.Contains(g.Why, "pidfd_getfd(2)")
	})
	if !named || plan.Err(nil, false) != nil || plan.Err(nil, true) == nil {
		return unix.EBADE
	}
	return actUnder(plan, exe, a[0], a[1:])
}

// actUnder makes an act in a directory, confined unless plan is nil, and returns its answer.
func actUnder(plan *enforce.Plan, exe, dir string, act []string) error {
	p, err := startUnder(plan, &fork.Command{Path: exe, Args: act, Dir: dir, Env: []string{"ZSBX_TEST_ACT=" + act[0]}})
	if err != nil {
		return err
	}
	defer p.Close()
	for {
		ev, err := p.Next()
		if err != nil {
			return err
		}
		if ev.Kind == fork.Exited {
			return errnoOf(unix.Errno(ev.Status.ExitStatus()))
		}
	}
}

// TestContainer: if the container's filter refuses pidfd_getfd(2), as Docker's does, the gap
// says so, the command runs, and what Landlock closes is closed.
func TestContainer(t *testing.T) {
	needLandlock(t, 1) // else there are other gaps as well
	needBroker(t)
	p := newPlace(t)
	d := listenOutside(t, "unix", p.out+"/sock")
	name := fmt.Sprintf("zsbx-container-%d", os.Getpid())
	abstract := listenOutside(t, "unix", "@"+name)
	for _, act := range [][]string{
		{"unix-own", p.in + "/own"}, {"pair"}, {"reach", "plain", p.out + "/sock"},
	} {
		if got := p.try(t, nil, "in-container", append([]string{p.in}, act...)...); got != 0 {
			t.Errorf("%v: %v", act, got)
		}
	}
	testkit.Eventually(t, "the gap is one: the socket outside is reached", func() bool { return d.reached.Load() > 0 })
	needLandlock(t, 6) // for abstract names
	if got := p.try(t, nil, "in-container", p.in, "reach", "abstract", name); got != unix.EPERM || abstract.reached.Load() != 0 {
		t.Errorf("abstract name: %v, %d connections", got, abstract.reached.Load())
	}
	if got := p.try(t, nil, "reach", "abstract", name); got != 0 {
		t.Errorf("control: abstract name: %v", got)
	}
}

// refusedCall starts a program with a keeper while one system call is refused, and returns the
// result.
func refusedCall(a []string) error {
	if err := refuseCalls(uint32(num(a[0]))); err != nil {
		return err
	}
	// A start that hangs is killed.
	if _, err := unix.Setitimer(unix.ItimerReal, unix.Itimerval{Value: unix.Timeval{Sec: 20}}); err != nil {
		return err
	}
	p, err := fork.Start(&fork.Command{Path: "/bin/true", Args: []string{"true"}, Keeper: &fork.Keeper{}})
	if err != nil {
		return err
	}
	defer p.Close()
	for {
		ev, err := p.Next()
		if err != nil || ev.Kind == fork.Exited {
			return err
		}
	}
}

// probeFailing returns what Probe says if a system call fails. ENOTUNIQ means that it has no error.
func probeFailing(a []string) error {
	if err := failCalls(unix.Errno(num(a[1])), uint32(num(a[0]))); err != nil {
		return err
	}
	if caps := enforce.Probe(); caps.Err != nil {
		return caps.Err
	}
	return unix.ENOTUNIQ
}

// TestProbeFailing: an error that is no answer is an error, not a gap.
func TestProbeFailing(t *testing.T) {
	p := newPlace(t)
	for _, call := range []int{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_SECCOMP, unix.SYS_PIDFD_GETFD, unix.SYS_PRCTL, unix.SYS_CAPGET} {
		for errno, want := range map[unix.Errno]unixErrno{
			unix.EIO: unix.EIO, unix.EMFILE: unix.EMFILE, unix.ENXIO: unix.ENXIO, unix.EPERM: unix.ENOTUNIQ, unix.ENOSYS: unix.ENOTUNIQ,
		} {
			if call == unix.SYS_CAPGET {
				want = errno
			}
			if got := p.try(t, nil, "probe-failing", fmt.Sprint(call), fmt.Sprint(int(errno))); got != want {
				t.Errorf("system call %d fails with %v: %v, want %v", call, errno, got, want)
			}
		}
	}
}

// TestRefusedCalls: without the call that wakes the keeper the start fails instead of hanging.
func TestRefusedCalls(t *testing.T) {
	p := newPlace(t)
	for call, want := range map[int]unix.Errno{
		unix.SYS_ACCT:      0, // control: nothing calls this
		unix.SYS_SIGNALFD4: unix.EPERM,
	} {
		if got := p.try(t, nil, "refused-call", fmt.Sprint(call)); got != want {
			t.Errorf("without system call %d: %v, want %v", call, got, want)
		}
	}
}
