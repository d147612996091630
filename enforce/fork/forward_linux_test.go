//go:build linux && (amd64 || arm64)

package fork

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestForward: a signal to this process alone reaches the command. Otherwise it would kill this
// process.
func TestForward(t *testing.T) {
	var before, during, after kernelAction
	if err := sigaction(syscall.SIGUSR1, nil, &before); err != nil {
		t.Fatal(err)
	}
	ignore := kernelAction{handler: sigIgnore}
	var old kernelAction
	if err := sigaction(syscall.SIGUSR2, &ignore, &old); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sigaction(syscall.SIGUSR2, &old, nil) }()

	ready := filepath.Join(t.TempDir(), "ready")
	c := &Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", "trap 'exit 7' USR1; trap 'exit 8' USR2; echo >" + ready + "; while :; do sleep 0.01; done"},
		Env: os.Environ(), Keeper: &Keeper{}, Forward: []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2},
	}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Forwarding() {
		t.Error("signals are not passed on")
	}
	if _, err := Start(c); err == nil {
		t.Error("the signals of one process were given to two commands")
	}
	testkit.Eventually(t, "the command has its traps", func() bool { _, err := os.Stat(ready); return err == nil })
	if err := sigaction(syscall.SIGUSR1, nil, &during); err != nil || during.handler == before.handler {
		t.Errorf("handler %#x during the run, %#x before, %v", during.handler, before.handler, err)
	}
	// The second one is ignored by this process, and stays so.
	var ignored kernelAction
	if err := sigaction(syscall.SIGUSR2, nil, &ignored); err != nil || ignored.handler != 1 {
		t.Errorf("handler %#x of the ignored signal, %v", ignored.handler, err)
	}
	for _, s := range []syscall.Signal{syscall.SIGUSR2, syscall.SIGUSR1} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	if st, _ := finish(t, p); st.ExitStatus() != 7 {
		t.Errorf("the command ended with %d, want 7", st.ExitStatus())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := sigaction(syscall.SIGUSR1, nil, &after); err != nil || after != before {
		t.Errorf("afterwards %+v, before %+v, %v", after, before, err)
	}
}

// TestForwardEarly: a signal that comes before the command is started is not lost.
func TestForwardEarly(t *testing.T) {
	c := &Command{
		Path: "/bin/sleep", Args: []string{"sleep", "60"}, Keeper: &Keeper{}, Forward: []syscall.Signal{syscall.SIGUSR1},
		Commit: []func(*Process) error{func(p *Process) error { return p.Signal(syscall.SIGUSR1) }},
	}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	if st, _ := finish(t, p); st.Signal() != syscall.SIGUSR1 {
		t.Errorf("the command ended with %v", st)
	}
	_ = p.Close()
}

// TestForwardLate: a signal that is still pending when the command has ended was for the
// command, so the caller's own handler does not get it.
func TestForwardLate(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := make(chan os.Signal, 2)
	signal.Notify(own, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(own)
	p, err := Start(&Command{
		Path: "/bin/true", Args: []string{"true"}, Keeper: &Keeper{}, Forward: []syscall.Signal{syscall.SIGUSR1},
	})
	if err != nil {
		t.Fatal(err)
	}
	var set, old unix.Sigset_t
	set.Val[0] = 1 << (syscall.SIGUSR1 - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	err = p.Close()
	if merr := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil || merr != nil {
		t.Fatal(err, merr)
	}
	// If the first one had reached the caller, it would come before this one.
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-own:
		if s != syscall.SIGUSR2 {
			t.Errorf("the caller got %v", s)
		}
	case <-time.After(testkit.Patience):
		t.Error("the caller does not get its own signals any more")
	}
}

// TestForwardKeyboard: SIGINT as from the terminal is passed on to a command with its own
// terminal. Only a thread itself can imitate such a signal.
func TestForwardKeyboard(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	for terminal, seconds := range map[bool]string{false: "0.3", true: "1000"} {
		p, err := Start(&Command{
			Path: "/bin/sleep", Args: []string{"sleep", seconds}, Keeper: &Keeper{}, Files: []*os.File{slave},
			Forward: []syscall.Signal{syscall.SIGINT}, Terminal: terminal,
		})
		if err != nil {
			t.Fatal(err)
		}
		info := [32]int32{int32(syscall.SIGINT), 0, 0x80} // siginfo_t: si_signo, si_errno, si_code SI_KERNEL
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), uintptr(unix.Gettid()),
			uintptr(syscall.SIGINT), uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 {
			t.Fatal(errno)
		}
		if ws, _ := finish(t, p); (ws.Signaled() && ws.Signal() == syscall.SIGINT) != terminal {
			t.Errorf("terminal of its own %v: the command ended with %v", terminal, ws)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
