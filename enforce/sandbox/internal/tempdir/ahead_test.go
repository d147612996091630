//go:build unix

package tempdir

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAhead: the next run gets what this one made ahead, and none that somebody
// else has used or can get at.
func TestAhead(t *testing.T) {
	parent, store := shortDir(t), shortDir(t)
	made := filepath.Join(store, next)
	inode := func(p string) (st unix.Stat_t) {
		_ = unix.Lstat(p, &st)
		return st
	}
	again := func() *Dir {
		t.Helper()
		d, err := Make(parent, store)
		if err != nil {
			t.Fatal(err)
		}
		if !isTempName(filepath.Base(d.Path())) || !isEmptyTemp(d.Path()) {
			t.Errorf("%s is not as a new one", d.Path())
		}
		return d
	}
	d := again()
	used := inode(d.Path()).Ino
	d.Ahead()
	ahead := inode(made)
	if ahead.Ino == 0 || !d.LayAside() || inode(filepath.Join(store, last)).Ino != used {
		t.Fatal("nothing was made ahead, or laid aside")
	}
	d = again()
	if got := inode(d.Path()); got.Ino != ahead.Ino || inode(made).Ino != 0 {
		t.Error("what was made ahead was not taken")
	}
	if err := os.WriteFile(filepath.Join(d.Path(), "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d.Ahead(); inode(filepath.Join(store, last)).Ino != 0 {
		t.Error("what was laid aside is still there")
	}
	if d.LayAside() {
		t.Error("a directory with a file was laid aside")
	}
	if err := d.Remove(); err != nil || inode(d.Path()).Ino != 0 {
		t.Error("it was not removed", err)
	}
	for name, spoil := range map[string]func() error{
		"open":      func() error { return os.Chmod(made, 0o770) },
		"sticky":    func() error { return unix.Chmod(made, 0o1700) },
		"a link":    func() error { return os.Symlink(parent, made) },
		"a file":    func() error { return os.WriteFile(made, nil, 0o700) },
		"another's": func() error { return os.Chown(made, 1, -1) },
	} {
		if name == "another's" && os.Geteuid() != 0 {
			continue
		}
		_ = os.RemoveAll(made)
		if d.Ahead(); name == "a link" || name == "a file" {
			_ = os.RemoveAll(made)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		was := inode(made)
		if d := again(); inode(d.Path()).Ino == was.Ino || inode(made).Ino != was.Ino {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// TestAheadElsewhere: without a place for them, and on another file system, a
// directory is made as ever.
func TestAheadElsewhere(t *testing.T) {
	var names []string
	for _, store := range []string{"", "zsbx", "/no/such/directory", "/dev/null/x"} {
		t.Chdir(t.TempDir())
		if err := os.MkdirAll(filepath.Join("zsbx", next), 0o700); err != nil {
			t.Fatal(err)
		}
		d, err := Make("", store)
		if err != nil {
			t.Fatal(err)
		}
		if d.Ahead(); d.LayAside() {
			t.Errorf("%q: laid aside", store)
		}
		if _, err := os.Stat(filepath.Join("zsbx", next)); err != nil {
			t.Errorf("%q: a directory of the project's was taken", store)
		}
		names = append(names, d.Path())
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}
	if names[0] == names[1] {
		t.Error(names)
	}
}

// shortDir is a directory whose name leaves room for those of sockets.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "ahead")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
