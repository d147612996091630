package apply

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const killEnv = "ZSBX_KILL" // "apply N TOP" or "undo N TOP"

// killed is a process that kills itself before its n-th act.
func killed() {
	what := strings.Fields(os.Getenv(killEnv))
	n, _ := strconv.Atoi(what[1])
	l := find(what[2])
	inTrees = what[3] == "true"
	step = func(string) {
		n--
		if n == 0 {
			unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	var err error
	var res Result
	if what[0] == "apply" {
		res, err = Apply(l, Options{})
	} else {
		err = Undo(l, Options{})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if len(res.Conflicts)+len(res.Refused) > 0 {
		fmt.Printf("not applied: %+v %+v\n", res.Conflicts, res.Refused)
	}
	os.Exit(0)
}

// killAt begins a process that ends before its n-th act, and reports whether it had that many.
func killAt(t *testing.T, what string, n int, w *world) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s %t", killEnv, what, n, w.top, inTrees), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if err == nil || strings.HasPrefix(string(out), "not all was taken back: ") {
		return false
	}
	if exit == nil || exit.ExitCode() != -1 {
		t.Fatalf("%s %d: %v: %s", what, n, err, out)
	}
	return true
}

// killWorld has one change of each kind.
func killWorld(t *testing.T) (w *world, old, want map[string]string) {
	w = newWorld(t, memory(t), `mkdir -p d/gone shut
echo old >d/a; echo old >d/rm; echo old >d/gone/x
touch -d 2001-01-01 d/gone/* d/* d .; chmod 555 shut`)
	old = snapshot(t, w.tree)
	w.write(t, `mkdir -p d new/sub shut; echo new >d/a; mknod d/rm c 0 0; mknod d/gone c 0 0; chmod 700 d
echo new >new/b; echo new >new/sub/c; chmod 500 new; echo x >shut/x; chmod 555 shut; touch -d 2005-01-01 d . shut
cp -a . ../want; cd ../want; rm d/gone d/rm; touch -d 2005-01-01 d`)
	return w, old, snapshot(t, w.TreeDir(0)+"/want")
}

// TestKilled: an apply that ends anywhere can go on and go back.
func TestKilled(t *testing.T) { bothStages(t, testKilled) }

// bothStages runs a test with staging directories in the layer and in the tree.
func bothStages(t *testing.T, test func(t *testing.T)) {
	defer func() { inTrees = false }()
	for _, inTrees = range []bool{false, true} {
		t.Run(fmt.Sprint("inTrees=", inTrees), test)
	}
}

func testKilled(t *testing.T) {
	w, old, want := killWorld(t)
	n := 1
	for killAt(t, "apply", n, w) {
		recovers(t, fmt.Sprint("apply killed before act ", n), n, w, old, want)
		n++
	}
	t.Logf("%d places", n-1)
}

// TestUndoKilled: the same for an undo.
func TestUndoKilled(t *testing.T) { bothStages(t, testUndoKilled) }

func testUndoKilled(t *testing.T) {
	w, old, want := killWorld(t)
	goOn(t, w)
	n := 1
	for killAt(t, "undo", n, w) {
		recovers(t, fmt.Sprint("undo killed before act ", n), n, w, old, want)
		goOn(t, w)
		n++
	}
	t.Logf("%d places", n-1)
}

// recovers checks that each file is old or new, and that an apply, every second time, and an undo come to an end.
// Then all is old.
func recovers(t *testing.T, at string, n int, w *world, old, want map[string]string) {
	t.Helper()
	oldOrNew(t, at, w, old, want)
	if n%2 == 0 {
		same(t, at+", went on", goOn(t, w), want)
	}
	if err := takeBack(w); err != nil {
		t.Errorf("%s, undo: %v", at, err)
	}
	same(t, at+", went back", snapshot(t, w.tree), old)
	w.undone(t)
	if t.Failed() {
		t.Fatal(at)
	}
}

// oldOrNew checks that each file is old or new.
func oldOrNew(t *testing.T, at string, w *world, old, want map[string]string) {
	t.Helper()
	for rel, text := range snapshot(t, w.tree) {
		if strings.HasPrefix(rel, ".zsbx-try-") || text[0] == '4' {
			continue
		}
		if text != old[rel] && text != want[rel] {
			t.Errorf("%s: %s is %s", at, rel, text)
		}
	}
}

// takeBack takes an apply back if there was one.
func takeBack(w *world) error {
	_, err := os.Stat(filepath.Join(w.Dir, journalFile))
	if err != nil {
		return nil
	}
	return Undo(w.Layer, Options{})
}

func goOn(t *testing.T, w *world) map[string]string {
	t.Helper()
	res, err := Apply(w.Layer, Options{})
	if err != nil || res.Conflicts != nil || res.Refused != nil {
		t.Errorf("going on: %v, %+v", err, res)
	}
	return snapshot(t, w.tree)
}

// TestStopped: an apply and an undo that are stopped between any two changes can go on and go back, too.
func TestStopped(t *testing.T) { bothStages(t, testStopped) }

func testStopped(t *testing.T) {
	w, old, want := killWorld(t)
	places := 0
	for _, what := range []string{"apply", "undo"} {
		for n := 1; ; n++ {
			if what == "undo" {
				goOn(t, w)
			}
			asked := 0
			o := Options{Stopped: func() bool { asked++; return asked == n }}
			var err error
			if what == "apply" {
				_, err = Apply(w.Layer, o)
			} else {
				err = Undo(w.Layer, o)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, ErrStopped) || err.Error() != ErrStopped.Error() {
				t.Fatal(err)
			}
			recovers(t, fmt.Sprintf("%s stopped after %d changes", what, n), n, w, old, want)
			places++
		}
		if err := takeBack(w); err != nil {
			t.Fatal(err)
		}
	}
	if places < 10 {
		t.Errorf("stopped at %d places", places)
	}
}

// TestUndoKilledKeepsWork: wherever an undo is killed, what was changed after the apply is not lost.
func TestUndoKilledKeepsWork(t *testing.T) { bothStages(t, testUndoKilledKeepsWork) }

func testUndoKilledKeepsWork(t *testing.T) {
	for n := 1; ; n++ {
		w, _, _ := killWorld(t)
		goOn(t, w)
		sh(t, w.tree, "chmod 700 new; for f in d/a new/b; do echo work >$f; done")
		more := killAt(t, "undo", n, w)
		if err := takeBack(w); err == nil || !strings.Contains(err.Error(), "d/a (it has changed)") {
			t.Errorf("killed before act %d: %v", n, err)
		}
		sh(t, w.tree, `[ "$(cat d/a new/b)" = 'work
work' ]`)
		if !more {
			return
		}
	}
}
