package apply

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
)

// TestRounds: what is kept of one apply is not taken for that of another, whose number is free again.
func TestRounds(t *testing.T) {
	w := newWorld(t, memory(t), "echo old >a; echo old >b")
	w.write(t, "echo new >a; echo new >b")
	w.apply(t, Options{Paths: []string{w.tree + "/a"}})
	w.apply(t, Options{Paths: []string{w.tree + "/b"}})
	sh(t, w.tree, "rm b; echo mine >b")
	if err := Undo(w.Layer, Options{}); err == nil || !strings.Contains(err.Error(), "/b (") {
		t.Fatal(err)
	}
	w.apply(t, Options{Paths: []string{w.tree + "/a"}})
	sh(t, w.tree, `[ "$(cat a b)" = 'new
mine' ]`)
	if err := Undo(w.Layer, Options{}); err == nil || !strings.Contains(err.Error(), "/b (") {
		t.Error(err)
	}
	sh(t, w.tree, `[ "$(cat a b)" = 'old
mine' ]`)
	sh(t, w.Dir, `[ "$(cat old-*/*)" = old ]`)
}

// stopAfter returns what stops an apply when it has asked n times whether it is to stop.
func stopAfter(n int) func() bool {
	return func() bool {
		n--
		return n < 0
	}
}

// TestUndoNotMade: an undo of an apply that was cut off before it removed a file leaves that file, also if
// somebody has replaced it.
func TestUndoNotMade(t *testing.T) {
	w := newWorld(t, memory(t), "echo old >f")
	w.overlay(t, "rm f; echo x >a")
	if _, err := Apply(w.Layer, Options{Stopped: stopAfter(2)}); err == nil {
		t.Fatal("it was not stopped")
	}
	sh(t, w.tree, "[ -e f ] && echo mine >f.new && mv f.new f")
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Error(err)
	}
	sh(t, w.tree, "[ $(cat f) = mine ] && [ ! -e a ]")
}

// TestUndoKeepsModes: a directory whose mode or attributes somebody has changed after an apply keeps them, and is named,
// also if an apply that was cut off goes on. The control: others get back what they had.
func TestUndoKeepsModes(t *testing.T) {
	const old = "for d in mine same made attr; do mkdir $d; chmod 755 $d; attr $d user.a old; done"
	const new = "echo x >mine/x; echo x >same/x; chmod 700 made; chmod 700 attr; attr attr user.a new; echo x >f"
	const since = "chmod 711 mine; chmod 750 made; attr attr user.a mine"
	const kept = "[ $(stat -c %a mine same made attr | tr '\n' .) = $0 ] && [ ! -e mine/x ] && [ ! -e same/x ]"
	w := newWorld(t, memory(t), old)
	w.overlay(t, new)
	w.apply(t, Options{})
	sh(t, w.tree, since)
	err := Undo(w.Layer, Options{})
	for _, name := range []string{"/mine (it has changed)", "/made (", "/attr ("} {
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "/same (") {
			t.Errorf("%v does not name %s alone", err, name)
		}
	}
	sh(t, w.tree, strings.ReplaceAll(kept, "$0", "711.755.750.700."))
	if got := string(attrs(w.tree + "/attr")["user.a"]); got != "mine" {
		t.Errorf("the attribute is %q", got)
	}

	w = newWorld(t, memory(t), old)
	w.overlay(t, new)
	committed := false
	step = func(what string) { committed = committed || what == "rename in" }
	_, err = Apply(w.Layer, Options{Stopped: func() bool { return committed }})
	step = func(string) {}
	if err != ErrStopped {
		t.Fatal(err)
	}
	sh(t, w.tree, since)
	res := w.apply(t, Options{})
	if len(res.Conflicts) != 1 || res.Conflicts[0].Path != "made" {
		t.Errorf("%+v", res)
	}
	sh(t, w.tree, "[ $(stat -c %a mine same made | tr '\n' .) = 711.755.750. ] && [ -e mine/x ]")
}

// TestUndoRemoved: what an apply has replaced is back after an undo, also if somebody has removed what is new, and if
// that undo was cut off. The control: something else that is there now stays.
func TestUndoRemoved(t *testing.T) { bothStages(t, testUndoRemoved) }

func testUndoRemoved(t *testing.T) {
	w := newWorld(t, memory(t), "echo old >a; echo old >b; echo old >c; touch -d 2001-01-01 c")
	old := snapshot(t, w.tree)
	w.overlay(t, "echo new >a; echo new >b; echo new >c")
	w.apply(t, Options{})
	sh(t, w.tree, "rm a c; echo mine >a")
	back := false
	step = func(what string) { back = back || what == "rename in" }
	err := Undo(w.Layer, Options{Stopped: func() bool { return back }})
	step = func(string) {}
	if err != ErrStopped {
		t.Fatal(err)
	}
	err = Undo(w.Layer, Options{})
	if err == nil || !strings.Contains(err.Error(), "/a (it has changed)") || strings.Contains(err.Error(), "/c (") {
		t.Error(err)
	}
	got := snapshot(t, w.tree)
	if got["c"] != old["c"] || got["b"] != old["b"] {
		t.Errorf("%q, not %q", got, old)
	}
	sh(t, w.tree, "[ $(cat a) = mine ]")
}

// TestTheirsBelow: a directory is removed although something in it is in conflict, if that is decided. The control: it
// stays if something else in it has changed.
func TestTheirsBelow(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(t, memory(t), "mkdir -p d/sub; echo 1 >d/f; echo 1 >d/g; echo 1 >d/sub/h")
		w.overlay(t, "rm -r d")
		sh(t, w.tree, "echo changed >d/f; echo new >d/sub/new")
		before := snapshot(t, w.tree)
		find := func() ([]layer.Change, []layer.Touched, error) {
			all, touched, err := w.Everything()
			if late {
				sh(t, w.tree, "echo changed >d/g")
			}
			return all, touched, err
		}
		res, err := apply(w.Layer, Options{Theirs: []string{w.tree + "/d"}}, find)
		_, gone := os.Lstat(w.tree + "/d")
		if err != nil || (len(res.Conflicts) == 0) == late || (gone != nil) == late {
			t.Errorf("%+v, %v, %v", res, err, gone)
		}
		if late {
			continue
		}
		if err := Undo(w.Layer, Options{}); err != nil {
			t.Error(err)
		}
		same(t, "taken back", snapshot(t, w.tree), before)
	}
}

// TestNameTaken: a command that makes what a staging directory is called does not keep applies from being made.
func TestNameTaken(t *testing.T) { bothStages(t, testNameTaken) }

func testNameTaken(t *testing.T) {
	w := newWorld(t, memory(t), "echo old >f")
	name := ".zsbx-try-" + w.Session + "-2"
	w.overlay(t, "mkdir "+name+"; echo mine >"+name+"/x; echo new >f; echo new >g")
	w.apply(t, Options{Paths: []string{w.tree + "/" + name}})
	w.apply(t, Options{Paths: []string{w.tree + "/f"}})
	w.apply(t, Options{})
	sh(t, w.tree, "[ $(cat f g "+name+"/x | tr '\n' .) = new.new.mine. ]")
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Error(err)
	}
	sh(t, w.tree, "[ $(cat f) = old ] && [ ! -e g ] && [ ! -e "+name+" ]")
}

// TestDirectoryNotSet: a directory that can't look as it is to look is named.
func TestDirectoryNotSet(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a directory immutable")
	}
	w := newWorld(t, t.TempDir(), "mkdir d")
	w.overlay(t, "chmod 700 d")
	setImmutable(t, w.tree+"/d", immutable)
	defer setImmutable(t, w.tree+"/d", 0)
	res, err := Apply(w.Layer, Options{})
	if err != nil || len(res.Refused) != 1 || res.Refused[0].Path != "d" || res.Left != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

const immutable = 0x10 // FS_IMMUTABLE_FL

// setImmutable sets the flags of a directory (FS_IOC_SETFLAGS in ioctl_iflags(2)).
func setImmutable(t *testing.T, dir string, flags int) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		t.Skip("no immutable directories here: ", err)
	}
}

// TestKeptWhole: nothing is removed in a directory that was to become a file and stays.
func TestKeptWhole(t *testing.T) {
	w := newWorld(t, memory(t), "mkdir -p D/sub; echo 1 >D/f; echo 2 >D/sub/f")
	w.overlay(t, "rm -r D; echo file >D")
	sh(t, w.tree, "echo mine >D/new")
	res, err := Apply(w.Layer, Options{})
	if err != nil || res.Applied != 0 || len(res.Conflicts) == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	sh(t, w.tree, `[ "$(cat D/f D/sub/f D/new)" = '1
2
mine' ]`)
}

// TestDropCut: what a cut-off apply had set aside can have gone, and its tree. Only then it can neither go on nor
// back. It can be dropped.
func TestDropCut(t *testing.T) { bothStages(t, testDropCut) }

func testDropCut(t *testing.T) {
	for _, c := range []struct {
		gone string // a script
		ends bool   // it can go on and back
	}{{"true", true}, {"rm -rf ../state/*/old-* ../state/*/*/old-* .zsbx-*", false}, {"rm -r $PWD", false}} {
		w := newWorld(t, memory(t), "echo old >a; echo old >b")
		w.overlay(t, "echo new >a; echo new >b")
		if _, err := Apply(w.Layer, Options{Stopped: stopAfter(2)}); err == nil {
			t.Fatal("it was not stopped")
		}
		sh(t, w.tree, c.gone)
		if err := Drop(w.Layer, false); err == nil {
			t.Error("dropped")
		}
		if err := Undo(w.Layer, Options{}); (err == nil) != c.ends {
			t.Errorf("%s: undo: %v", c.gone, err)
		}
		if _, err := Apply(w.Layer, Options{}); (err == nil) != c.ends {
			t.Errorf("%s: apply: %v", c.gone, err)
		}
		if err := Drop(w.Layer, true); err != nil {
			t.Errorf("%s: %v", c.gone, err)
		}
	}
}
