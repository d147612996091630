//go:build unix

package safepath

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMakeOwnDir(t *testing.T) {
	own := t.TempDir()
	dir := filepath.Join(own, "a/b/c")
	if err := MakeDir(dir, 0o700, true); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != own; d = filepath.Dir(d) {
		if st, err := os.Stat(d); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, st, err)
		}
	}
	if err := MakeDir(filepath.Join(own, "a/b"), 0o700, true); err != nil {
		t.Errorf("a directory that is there: %v", err)
	}

	foreign := "/proc"
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := MakeDir(filepath.Join(foreign, "x/y"), 0o700, true); !errors.Is(err, ErrNotOwner) {
		t.Errorf("below another user's directory: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(foreign, "x")); err == nil {
		t.Error("x was made all the same")
	}
}
