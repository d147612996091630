package apply

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	_, out, err := straceOf(t, strace, what, call, fmt.Sprintf("signal=KILL:when=%d", n), w)
	if err == nil {
		return false
	}
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Fatalf("%s, %s %d: %v: %s", what, call, n, err, out)
	}
	return true
}

// straceOf runs an apply or an undo under strace(1), which injects something into a system call. It returns the trace
// and what the process wrote.
func straceOf(t *testing.T, strace, what, call, inject string, w *world) (trace, out string, _ error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.top, "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-o", file, "-e", "trace="+call, "-e", "inject="+call+":"+inject, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s 1000000 %s %t", killEnv, what, w.top, inTrees), "GOMAXPROCS=1")
	b, failed := cmd.CombinedOutput()
	all, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return string(all), string(b), failed
}

// TestStraceFails: an apply of which any one system call fails leaves each file old or new. If it says nothing, all is
// new, and in any case an undo goes back, but for times of directories.
func TestStraceFails(t *testing.T) { bothStages(t, testStraceFails) }

func testStraceFails(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is missing")
	}
	w, old, want := killWorld(t)
	errnos := []string{"EIO", "ENOSPC", "EROFS"}
	failed := 0
	for _, call := range straced {
		for n := 1; ; n++ {
			inject := fmt.Sprintf("error=%s:when=%d", errnos[n%len(errnos)], n)
			trace, out, err := straceOf(t, strace, "apply", call, inject, w)
			if !strings.Contains(trace, "(INJECTED)") {
				break
			}
			at := call + ", " + inject
			oldOrNew(t, at, w, old, want)
			exit, _ := errors.AsType[*exec.ExitError](err)
			switch {
			case err == nil && out == "":
				alike(t, at, w, want)
			case exit != nil && (exit.ExitCode() != 1 || out == ""):
				t.Fatalf("%s: %v: %s", at, err, out)
			case exit != nil:
				failed++
			}
			err = takeBack(w)
			if err != nil {
				t.Fatalf("%s, undo: %v", at, err)
			}
			alike(t, at+", went back", w, old)
			w.undone(t)
		}
		err := takeBack(w) // the last one went well
		if err != nil {
			t.Fatal(err)
		}
	}
	if failed < 10 {
		t.Errorf("%d applies failed", failed)
	}
	t.Logf("%d applies failed", failed)
}

// alike fails the test if something is not as it is to be, but for times of directories.
func alike(t *testing.T, at string, w *world, want map[string]string) {
	t.Helper()
	got := snapshot(t, w.tree)
	for rel, text := range want {
		if text[0] == '4' {
			text = strings.Fields(text)[0]
		}
		if !strings.HasPrefix(got[rel], text) {
			t.Errorf("%s: %s is %s, not %s", at, rel, got[rel], text)
		}
	}
}
