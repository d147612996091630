package apply

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTamper: a command that may write the tree meanwhile, but not the protected files in it, can't choose what
// these become by an apply or by an undo: what is staged is not in the tree.
func TestTamper(t *testing.T) {
	w := newWorld(t, t.TempDir(), "mkdir hooks; echo old >hooks/a; echo old >hooks/gone")
	w.write(t, "mkdir hooks; echo new >hooks/a; echo new >hooks/b; mknod hooks/gone c 0 0")
	old := snapshot(t, w.tree)
	tries := 0
	step = func(what string) {
		tries++
		for _, name := range w.staged(t) {
			if err := os.WriteFile(name, []byte("evil"), 0o644); err == nil {
				t.Errorf("before %q, %s could be written", what, name)
			}
		}
	}
	defer func() { step = func(string) {} }()
	w.apply(t, Options{})
	sh(t, w.tree, `[ "$(cat hooks/a hooks/b)" = 'new
new' ] && [ ! -e hooks/gone ]`)
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Fatal(err)
	}
	same(t, "taken back", snapshot(t, w.tree), old)
	if tries == 0 {
		t.Error("no step was seen")
	}
}

// TestTamperInTree: where the staging directory is in the tree, what somebody changes in it is not put into place, even
// if size and times stay.
func TestTamperInTree(t *testing.T) {
	inTrees = true
	defer func() { inTrees = false }()
	evil := func(t *testing.T, w *world) {
		names := w.staged(t)
		if len(names) != 2 {
			t.Errorf("%q", names)
		}
		for _, name := range names {
			sh(t, w.tree, fmt.Sprintf("touch -r %[1]s ref; echo bad >%[1]s; touch -r ref %[1]s; rm ref", name))
		}
	}
	t.Run("apply", func(t *testing.T) {
		w := newWorld(t, t.TempDir(), "echo old >a")
		w.write(t, "echo new >a; echo new >b")
		step = func(what string) {
			if what == "rename in" || what == "rename out" {
				t.Error("something was renamed")
			}
			if what == "write journal" && len(w.staged(t)) == 2 {
				evil(t, w)
			}
		}
		defer func() { step = func(string) {} }()
		if res := w.apply(t, Options{}); len(res.Conflicts) != 2 {
			t.Errorf("%+v", res)
		}
		sh(t, w.tree, `[ "$(cat a)" = old ] && [ ! -e b ]`)
	})
	t.Run("undo", func(t *testing.T) {
		w := newWorld(t, t.TempDir(), "echo old >a; echo old >b")
		w.write(t, "echo new >a; mknod b c 0 0")
		w.apply(t, Options{})
		evil(t, w)
		if err := Undo(w.Layer, Options{}); err == nil || !strings.Contains(err.Error(), "changed it in the staging directory") {
			t.Error(err)
		}
		sh(t, w.tree, `[ "$(cat a)" = new ] && [ ! -e b ]`)
	})
}

// staged returns what is in the staging directories in the tree.
func (w *world) staged(t *testing.T) []string {
	names, err := filepath.Glob(w.tree + "/.zsbx-try-*/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestLinksInTree: a file with several names is put into place by all of them where the staging directory is in the
// tree, and taken back, and it is not if its content has changed there.
func TestLinksInTree(t *testing.T) {
	inTrees = true
	defer func() { inTrees = false }()
	for _, tampered := range []bool{false, true} {
		w := newWorld(t, t.TempDir(), "echo old >a; ln a b; echo old >c")
		old := snapshot(t, w.tree)
		w.write(t, "echo new >a; ln a b; ln a d; mkdir e; ln a e/f")
		step = func(what string) {
			if tampered && what == "write journal" && len(w.staged(t)) > 0 {
				name := w.staged(t)[0]
				sh(t, w.tree, fmt.Sprintf("touch -r %[1]s ref; echo bad >%[1]s; touch -r ref %[1]s; rm ref", name))
				tampered = false
			}
		}
		want := 0
		if tampered {
			want = 4
		}
		res := w.apply(t, Options{})
		step = func(string) {}
		if len(res.Conflicts) != want {
			t.Errorf("%d conflicts wanted: %+v", want, res)
		}
		if want == 0 {
			sh(t, w.tree, "[ a -ef b ] && [ a -ef d ] && [ a -ef e/f ]")
			if err := Undo(w.Layer, Options{}); err != nil {
				t.Error(err)
			}
			same(t, "taken back", snapshot(t, w.tree), old)
		}
	}
}

// TestTamperKilled: what somebody changes in a staging directory in the tree after an apply was killed is not put into
// place, neither if that goes on nor if it goes back.
func TestTamperKilled(t *testing.T) {
	inTrees = true
	defer func() { inTrees = false }()
	changed := 0
	for _, what := range []string{"apply", "undo"} {
		more := true
		for n := 1; more; n++ {
			w := newWorld(t, memory(t), "echo old >a; echo old >b; echo old >c; mkdir d; echo old >d/e")
			w.write(t, "echo new >a; mknod b c 0 0; echo new >n; mknod d c 0 0; mkdir dir; echo new >dir/f")
			more = killAt(t, "apply", n, w)
			for _, name := range w.staged(t) {
				sh(t, w.tree, `find `+name+` -type f | while read -r f; do echo evil >>"$f"; done`)
				changed++
			}
			var err error
			if what == "apply" {
				_, err = Apply(w.Layer, Options{})
			}
			if what == "undo" || err != nil {
				_ = takeBack(w)
			}
			out, _ := exec.Command("grep", "-r", "--exclude-dir=.zsbx-try-*", "evil", w.tree).Output()
			if len(out) > 0 {
				t.Errorf("killed before act %d, then %s: %s", n, what, out)
			}
		}
	}
	if changed == 0 {
		t.Error("nothing was changed")
	}
}
