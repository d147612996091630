//go:build unix

package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAhead: the next run gets what this one made ahead, but not what others have used or can
// access.
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
		"open":   func() error { return os.Chmod(made, 0o770) },
		"sticky": func() error { return unix.Chmod(made, 0o1700) },
		"a link": func() error { return os.Symlink(parent, made) },
		"full":   func() error { return os.WriteFile(filepath.Join(made, "forged"), nil, 0o600) },
		"linked": func() error {
			return errors.Join(os.Remove(filepath.Join(made, "run")), os.Symlink("/etc", filepath.Join(made, "run")))
		},
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

// TestAheadElsewhere: without a store, or with one on another file system, a directory is made as
// usual.
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

// shortDir returns a directory whose name leaves room for the names of sockets.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "ahead")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestAheadForeign: what a link leads to, and a store that others can access, is left as it is.
func TestAheadForeign(t *testing.T) {
	parent, store, victim := shortDir(t), shortDir(t), shortDir(t)
	inside := filepath.Join(victim, "run")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := Make(parent, store)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(d.Path(), d.Path()+"x"), os.Symlink(victim, d.Path())); err != nil {
		t.Fatal(err)
	}
	if d.LayAside() {
		t.Error("a link was laid aside")
	}
	_ = d.Remove()
	if err := os.Symlink(victim, filepath.Join(store, last)); err != nil {
		t.Fatal(err)
	}
	d.Ahead()
	if _, err := os.Stat(inside); err != nil {
		t.Error("a directory was removed through a link")
	}
	link := filepath.Join(parent, "link")
	for _, bad := range []func() error{
		func() error { return os.Symlink(store, link) },
		func() error { return errors.Join(os.Remove(link), os.Mkdir(link, 0o700), os.Chmod(link, 0o770)) },
	} {
		if err := bad(); err != nil {
			t.Fatal(err)
		}
		d, err := Make(parent, link)
		if err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(filepath.Join(store, next))
		if d.Ahead(); d.LayAside() || exists(filepath.Join(link, next)) {
			t.Errorf("%s was used", link)
		}
		_ = d.Remove()
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
