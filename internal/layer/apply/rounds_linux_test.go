package apply

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// TestUndoNotMade: an undo of an apply that was cut off before it removed a file leaves that file, also if
// somebody has replaced it.
func TestUndoNotMade(t *testing.T) {
	w := newWorld(t, memory(t), "echo old >f")
	w.overlay(t, "rm f; echo x >a")
	n := 0
	stopped := func() bool {
		n++
		return n > 2
	}
	if _, err := Apply(w.Layer, Options{Stopped: stopped}); err == nil {
		t.Fatal("it was not stopped")
	}
	sh(t, w.tree, "[ -e f ] && echo mine >f.new && mv f.new f")
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Error(err)
	}
	sh(t, w.tree, "[ $(cat f) = mine ] && [ ! -e a ]")
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
		n := 0
		stopped := func() bool {
			n++
			return n > 2
		}
		if _, err := Apply(w.Layer, Options{Stopped: stopped}); err == nil {
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
