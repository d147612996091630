package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestSignalsByFiles: no file can be made to signal a group, or another process than the
// caller.
func TestSignalsByFiles(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	p := newPlace(t)
	victim := outsider(t)
	for name, plan := range p.signalPlans() {
		for _, act := range []string{"setown-group", "setown-high", "setown-ex", "fiosetown", "siocspgrp", "setsig", "async", "setown"} {
			want := unix.EPERM
			if act == "setown" && plan.ScopesSignals() {
				want = 0 // the kernel checks when it signals
			}
			if act == "setown" && !holds(plan) {
				continue
			}
			if got := p.kept(t, plan, act, victim); got != want {
				t.Errorf("%s: %s: got %v, want %v", name, act, got, want)
			}
			if control := p.kept(t, nil, act, victim); control != 0 {
				t.Errorf("control: %s: %v", act, control)
			}
		}
	}
}

// TestGroupSignalledByFile: a file can't signal a group that the command joined.
func TestGroupSignalledByFile(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	p := newPlace(t)
	for _, how := range []string{"setown", "setown-ex", "fiosetown", "siocspgrp"} {
		for name, plan := range p.signalPlans() {
			victim := outsider(t)
			p.kept(t, plan, "sigio", victim, how)
			if ended(victim, 300*time.Millisecond) {
				t.Errorf("%s: %s: the process outside got the signal", name, how)
			}
		}
		victim := outsider(t)
		if got := p.kept(t, nil, "sigio", victim, how); got != 0 || !ended(victim, testkit.Patience) {
			t.Errorf("control: %s: %v, and the process outside got no signal", how, got)
		}
	}
}

// TestForegroundSignalledByTerminal: a terminal does not signal its foreground group either
// when something is typed.
func TestForegroundSignalledByTerminal(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	p := newPlace(t)
	plans := p.signalPlans()
	plans["control"] = nil
	for name, plan := range plans {
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		// The outsider has the terminal; the act runs in the background of its session.
		c := exec.Command("/bin/sleep", "600")
		c.Stdin = tty
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		answered := make(chan syscall.Errno, 1)
		go func() { answered <- onTerminalOf(t, plan, p, tty) }()
		var answer syscall.Errno
		testkit.Eventually(t, "the act ends", func() bool { // it waits for what is typed
			master.Write([]byte("x\n"))
			time.Sleep(50 * time.Millisecond) // else the terminal is full before the act reads
			select {
			case answer = <-answered:
				return true
			default:
				return false
			}
		})
		patience := 50 * time.Millisecond
		if plan == nil {
			patience = testkit.Patience
		}
		got := ended(fmt.Sprint(c.Process.Pid), patience)
		switch {
		case plan == nil && !got:
			t.Errorf("control: %v, and no signal", answer)
		case plan != nil && got:
			t.Errorf("%s: the process outside got the signal", name)
		case plan != nil && answer != unix.EPERM:
			t.Errorf("%s: got %v, want %v", name, answer, unix.EPERM)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		tty.Close()
		master.Close()
	}
}

func onTerminalOf(t *testing.T, plan *enforce.Plan, p *place, tty *os.File) syscall.Errno {
	t.Helper()
	exe := self(t)
	c := &fork.Command{Path: exe, Args: []string{exe}, Dir: p.in, Files: []*os.File{tty}, Env: []string{"ZSBX_TEST_ACT=tty-async"}, Keeper: &fork.Keeper{}}
	proc, err := startUnder(plan, c)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	return syscall.Errno(await(t, proc).ExitStatus())
}

// ended reports whether a child of this process ends within a time.
func ended(pid string, within time.Duration) bool {
	return testkit.Within(within, func() bool {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, num(pid), &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		return err == nil && info.Signo != 0
	})
}
