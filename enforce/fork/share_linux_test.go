package fork

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// sharesMemory asks the kernel by kcmp(2) whether a process shares this one's memory.
func sharesMemory(t *testing.T, pid int) bool {
	t.Helper()
	const kcmpVM = 1
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), kcmpVM, 0, 0, 0)
	switch errno {
	case 0:
		return r == 0
	case unix.EPERM, unix.ESRCH:
		return false // it is not dumpable, while this process is; or it has ended
	}
	t.Fatal("kcmp:", errno)
	return false
}

// TestShare: the keeper shares its caller's memory if that was asked for and weakens no
// promise. Otherwise it has a copy.
func TestShare(t *testing.T) {
	outer, inner := domainSteps(t)
	for _, tt := range []struct {
		name string
		edit func(*Command)
		want bool
	}{
		{"asked for", func(c *Command) {}, true},
		{"not asked for", func(c *Command) { c.Share = false }, false},
		{"may stay", func(c *Command) { c.Keeper.Keep = true }, false},
		{"no domain", func(c *Command) { *c.Keeper = Keeper{} }, false},
		{"undumpable", func(c *Command) {
			if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) })
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Command{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Share: true, Keeper: &Keeper{Domain: true}}
			c.Keeper.Steps, c.Steps = outer, inner
			tt.edit(c)
			dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
			p, err := Start(c)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "the keeper is settled", func() bool { return sharesMemory(t, p.KeeperPid) == tt.want })
			if now, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); now != dumpable {
				t.Errorf("the caller's dumpable is %d, and was %d", now, dumpable)
			}
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if ws, _ := finish(t, p); ws.Signal() != syscall.SIGKILL {
				t.Errorf("the command ended with %v", ws)
			}
			_ = p.Close()
		})
	}
}

// TestShareFails: after a command that can't be started the next one starts, and its keeper is
// reaped.
func TestShareFails(t *testing.T) {
	outer, inner := domainSteps(t)
	for _, path := range []string{"/nonexistent", "/bin/true", "/nonexistent", "/bin/true"} {
		p, err := Start(&Command{Path: path, Args: []string{"x"}, Steps: inner, Share: true, Keeper: &Keeper{Domain: true, Steps: outer}})
		if (err == nil) != (path == "/bin/true") {
			t.Fatalf("%s: %v", path, err)
		}
		if err == nil {
			finish(t, p)
			_ = p.Close()
			if err := syscall.Kill(p.KeeperPid, 0); err != syscall.ESRCH {
				t.Errorf("the keeper is still there: %v", err)
			}
		}
	}
}

// TestRest: the process that releases the rest delays nobody, exists only if something reaps
// it, and ends by itself.
func TestRest(t *testing.T) {
	outer, inner := domainSteps(t)
	left := func() (pids []int) {
		all, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range all {
			comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if string(comm) == "zsbx-keeper\n" && sharesMemory(t, pid) {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	testkit.Eventually(t, "other tests have left nothing", func() bool { return len(left()) == 0 })
	want := 0
	if collectsOrphans() {
		want = 1
	}
	const stays = time.Second
	for missed := true; missed; {
		began := time.Now()
		p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Steps: inner, Share: true, Keeper: &Keeper{Domain: true, Steps: outer}})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, p)
		_ = p.Close()
		pids := left()
		missed = len(pids) != want
		if missed && time.Since(began) < stays { // on a busy machine it may have ended already
			t.Fatalf("%d processes have this one's memory, want %d", len(pids), want)
		}
	}
	testkit.Eventually(t, "nothing is left", func() bool { return len(left()) == 0 })
}
