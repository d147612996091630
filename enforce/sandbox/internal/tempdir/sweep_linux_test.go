package tempdir

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track"
)

// TestSweepTemp: what killed runs left is removed; what is in use, or could be
// something else, is not.
func TestSweepTemp(t *testing.T) {
	parent := t.TempDir()
	st, err := track.OpenStoreAt(filepath.Join(parent, "zsbx-"+strconv.Itoa(os.Geteuid())))
	if err != nil {
		t.Fatal(err)
	}
	make := func(name string, below ...string) string {
		dir := filepath.Join(parent, name)
		for _, d := range append([]string{""}, below...) {
			if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	left := []string{make("zsbx-11"), make("zsbx-12", "run")}
	stay := []string{
		make("zsbx-" + strconv.Itoa(os.Geteuid())), make("zsbx-21", "run", "run/x"), make("zsbx-22", "run", "x"), make("zsbx-23", "x"),
		make("zsbx-x"), make("zsbx-"), make("other-1"), make("zsbx-24", "run"), make("zsbx-25", "run"), make("zsbx-26", "run"),
	}
	if err := os.Chmod(filepath.Join(parent, "zsbx-24"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(left[0], filepath.Join(parent, "zsbx-27")); err != nil {
		t.Fatal(err)
	}
	held, err := lockDir(filepath.Join(parent, "zsbx-25"))
	if err != nil || held < 0 {
		t.Fatal(held, err)
	}
	user := exec.Command("sleep", "1000")
	user.Env = []string{"TMPDIR=" + filepath.Join(parent, "zsbx-26")}
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = user.Process.Kill(); _ = user.Wait() }()
	if err := Sweep(st, parent); err != nil {
		t.Error(err)
	}
	gone := func(dir string) bool { _, err := os.Lstat(dir); return errors.Is(err, os.ErrNotExist) }
	if !gone(left[0]) || !gone(left[1]) || slices.ContainsFunc(stay, gone) {
		entries, _ := os.ReadDir(parent)
		t.Errorf("left are %v", entries)
	}
	unix.Close(held)
	if err := Sweep(st, parent); err != nil || !gone(filepath.Join(parent, "zsbx-25")) {
		t.Errorf("one that was let go of is still there: %v", err)
	}
}
