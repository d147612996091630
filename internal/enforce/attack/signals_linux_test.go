package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
)

// signalPlans returns the ways in which this machine can keep signals inside: as it is, and
// like a kernel whose Landlock has no scope for them, where zsbx sends them.
func (p *place) signalPlans() map[string]*enforce.Plan {
	out := map[string]*enforce.Plan{"native": p.plan()}
	if caps := enforce.Probe(); caps.Landlock > 2 && caps.SeccompNotify {
		caps.MountNS, caps.MountReason = false, "left out by the test"
		caps.Landlock = 2
		out["answered"] = enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
	}
	return out
}

// holds reports whether a plan keeps signals inside.
func holds(plan *enforce.Plan) bool {
	for _, g := range plan.Gaps {
		if g.Name == enforce.GapSignals {
			return false
		}
	}
	return true
}

// kept is try with a keeper.
func (p *place) kept(t *testing.T, plan *enforce.Plan, name string, args ...string) syscall.Errno {
	t.Helper()
	exe := self(t)
	ws, out := run(t, plan, &fork.Command{
		Path: exe, Args: append([]string{exe}, args...), Dir: p.in, Keeper: &fork.Keeper{},
		Env: []string{"ZSBX_TEST_ACT=" + name, "GOMAXPROCS=1"},
	})
	if ws.Signaled() {
		return errnoSignal + syscall.Errno(ws.Signal())
	}
	if ws.ExitStatus() >= exitNoAct {
		t.Fatalf("%s %q: exit status %d: %s", name, args, ws.ExitStatus(), out)
	}
	return syscall.Errno(ws.ExitStatus())
}

// signalCalls returns the acts that take a process and then a signal.
func signalCalls() []string {
	return []string{"kill", "kill-high", "kill-group", "tkill", "tgkill", "sigqueue", "tgsigqueue", "pidfd", "pidfd-info"}
}

func TestSignalAttacks(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	p := newPlace(t)
	victim := outsider(t)
	for name, plan := range p.signalPlans() {
		if !holds(plan) {
			t.Logf("%s: this machine has the gap %s", name, enforce.GapSignals)
			continue
		}
		for _, act := range signalCalls() {
			for _, sig := range []unix.Signal{unix.SIGURG, unix.SIGKILL, unix.Signal(34)} {
				if got := p.kept(t, plan, act, victim, fmt.Sprint(int(sig))); got != unix.EPERM {
					t.Errorf("%s: %s %v: got %v, want %v", name, act, sig, got, unix.EPERM)
				}
			}
			if control := p.kept(t, nil, act, victim); control != 0 {
				t.Errorf("control: %s: %v", act, control)
			}
		}
		if got := p.kept(t, plan, "keeper", "9"); got != unix.EPERM {
			t.Errorf("%s: the keeper: got %v, want %v", name, got, unix.EPERM)
		}
	}
	if control := p.kept(t, nil, "keeper", fmt.Sprint(int(unix.SIGURG))); control != 0 {
		t.Errorf("control: the keeper: %v", control)
	}
}

// TestProcessExists: signal 0, which is used to check a lock file's owner, gets the same answer
// inside as outside.
func TestProcessExists(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	if c := enforce.Probe(); !c.SeccompNotify {
		testkit.Lacks(t, testkit.Seccomp, c.SeccompNotifyReason)
	}
	p := newPlace(t)
	// It leaves a process in its group, so that its number is not reused.
	gone := exec.Command("/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 &")
	gone.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(-gone.Process.Pid, unix.SIGKILL) })
	for what, pid := range map[string]string{"outside": outsider(t), "init": "1", "gone": fmt.Sprint(gone.Process.Pid), "never": fmt.Sprint(1<<22 + 1), "caller": fmt.Sprint(os.Getpid())} {
		for _, act := range signalCalls() {
			if strings.Contains(act, "sigqueue") || act == "kill-group" && what == "init" {
				continue
			}
			control := p.kept(t, nil, act, pid, "0")
			for name, plan := range p.signalPlans() {
				if got := p.kept(t, plan, act, pid, "0"); got != control {
					t.Errorf("%s: %s 0 of %s: got %v, without zsbx %v", name, act, what, got, control)
				}
			}
		}
	}
}

// TestOwnSignals: inside the session signals work as outside.
func TestOwnSignals(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	plans := p.signalPlans()
	for _, act := range []string{"own", "own-ptrace", "threads", "orphan", "setown-self"} {
		control := p.kept(t, nil, act)
		for name, plan := range plans {
			if got := p.kept(t, plan, act); got != control {
				t.Errorf("%s: %s: got %v, without zsbx %v", name, act, got, control)
			}
		}
	}
	for _, script := range []string{
		"sleep 60 & kill $! && wait $!",
		"sleep 60 & kill -STOP $!; until kill -CONT $!; do :; done; until kill -9 $!; do :; done; wait $!",
		"setsid sleep 60 & until kill -- -$!; do :; done; wait $!",
		"trap 'echo usr1' USR1; kill -USR1 $$; echo after",
		"sleep 60 & trap 'echo term' TERM; kill 0; wait $!; echo after $?",
		"setsid sh -c 'sleep 60 & sleep 60 & kill 0; sleep 60'",
		"timeout 0.2 sleep 60",
		"timeout 0.2 sh -c 'sleep 60 & wait'",
		"timeout --foreground 0.2 sleep 60",
		"setsid sh -c 'kill -9 0'",
		"kill -9 $$",
		"kill -STOP 1",
		"kill -0 $$ && kill -0 $PPID && echo both",
		"sh -c 'sh -c \"kill -TERM \\$PPID; sleep 60\"; echo not'",
	} {
		wantStatus, wantOut := p.below(t, nil, script)
		for name, plan := range plans {
			if script == "kill -STOP 1" && firstIsOwn(t) {
				continue // without zsbx it may be sent, and init ignores it
			}
			if status, out := p.below(t, plan, script); status != wantStatus || out != wantOut {
				t.Errorf("%s: %s: %d %q, without zsbx %d %q", name, script, status, out, wantStatus, wantOut)
			}
		}
	}
}

// firstIsOwn reports whether this user may send signals to process 1, as root may, and as a user may
// in a container whose first process runs as that user.
func firstIsOwn(t *testing.T) bool {
	t.Helper()
	err := unix.Kill(1, 0)
	if err != nil && err != unix.EPERM {
		t.Fatal(err)
	}
	return err == nil
}

// below is sh with a keeper, in its own terminal session and so in its own process group.
func (p *place) below(t *testing.T, plan *enforce.Plan, script string) (int, string) {
	t.Helper()
	ws, out := run(t, plan, &fork.Command{Path: "/usr/bin/setsid", Args: []string{"setsid", "--wait", "sh", "-c", "exec 2>/dev/null; " + strings.ReplaceAll(script, "sleep 60", "sleep 60 >/dev/null 2>&1")}, Dir: p.in, Keeper: &fork.Keeper{},
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + p.in, "TMPDIR=" + p.in, "LC_ALL=C.UTF-8"}})
	if ws.Signaled() {
		return 128 + int(ws.Signal()), out
	}
	return ws.ExitStatus(), strings.TrimSpace(out)
}

// TestKillEverybody: kill(-1) ends the session except the caller, and reaches no process
// outside. The control is in TestSignalAttacks, since this can't be tried without zsbx.
func TestKillEverybody(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	victim := outsider(t)
	for name, plan := range p.signalPlans() {
		if !holds(plan) {
			continue
		}
		status, out := p.below(t, plan, "sleep 60 & kill -9 -1; wait $!; echo $?")
		if status != 0 || out != "137" {
			t.Errorf("%s: %d %q", name, status, out)
		}
		if err := unix.Kill(num(victim), 0); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
