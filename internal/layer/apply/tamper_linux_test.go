package apply

import (
	"os"
	"path/filepath"
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
		names, err := filepath.Glob(w.tree + "/.zsbx-try-*/[0-9]*")
		if err != nil {
			t.Error(err)
		}
		tries++
		for _, name := range names {
			if err := os.WriteFile(name, []byte("evil"), 0o644); err == nil {
				t.Errorf("before %q, %s could be written", what, name)
			}
		}
	}
	defer func() { step = func(string) {} }()
	w.apply(t, Options{})
	sh(t, w.tree, `[ "$(cat hooks/a hooks/b)" = 'new
new' ] && [ ! -e hooks/gone ]`)
	if err := Undo(w.Layer); err != nil {
		t.Fatal(err)
	}
	same(t, "taken back", snapshot(t, w.tree), old)
	if tries == 0 {
		t.Error("no step was seen")
	}
}
