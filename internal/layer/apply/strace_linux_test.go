package apply

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// straced are the system calls before which an apply or an undo is killed. The n-th call of each thread counts.
var straced = []string{
	"mkdirat", "renameat2", "renameat", "unlinkat", "linkat", "symlinkat", "mknodat", "fsync", "syncfs", "pwrite64",
	"fchmod", "fchmodat", "utimensat", "fchownat", "setxattr", "removexattr", "fremovexattr", "ftruncate", "flock",
}

// TestStraceKilled: SIGKILL before any system call that changes files leaves each file old or new, and from there
// an apply goes on, and an undo goes back. Unlike in TestKilled, the code can't leave a call out.
func TestStraceKilled(t *testing.T) { bothStages(t, testStraceKilled) }

func testStraceKilled(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is missing")
	}
	w, old, want := killWorld(t)
	places := 0
	for _, what := range []string{"apply", "undo"} {
		for _, call := range straced {
			n := 1
			for straceKill(t, strace, what, call, n, w) {
				recovers(t, fmt.Sprintf("%s killed before %s %d", what, call, n), n, w, old, want)
				n++
			}
			places += n - 1
			err := takeBack(w)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d places", places)
}

// straceKill begins an apply or an undo that is killed before the n-th of some system calls, and reports whether
// there were that many.
func straceKill(t *testing.T, strace, what, call string, n int, w *world) bool {
	t.Helper()
	if what == "undo" {
		goOn(t, w)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s 1000000 %s %t", killEnv, what, w.top, inTrees), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Fatalf("%s, %s %d: %v: %s", what, call, n, err, out)
	}
	return true
}
