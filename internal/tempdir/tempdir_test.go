//go:build unix

package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTempParents: short names, and on a Mac the user's own directory.
func TestTempParents(t *testing.T) {
	long := "/" + strings.Repeat("x", 53)
	const own = "/var/folders/ab/cd/T/"
	for _, c := range []struct {
		goos, tmpdir, own string
		want              []string
	}{
		{"linux", "", "", []string{"/tmp"}}, {"linux", "rel", "", []string{"/tmp"}},
		{"linux", "/short", "", []string{"/short", "/tmp"}}, {"linux", long, "", []string{long, "/tmp"}},
		{"linux", long + "x", "", []string{"/tmp", long + "x"}},
		{"darwin", long, "", []string{"/tmp", long}}, {"darwin", long[:52], "", []string{long[:52], "/tmp"}},
		{"darwin", "/short", own, []string{own, "/tmp"}}, {"darwin", "", own, []string{own, "/tmp"}},
	} {
		if got := tempParents(c.goos, c.tmpdir, c.own); !slices.Equal(got, c.want) {
			t.Errorf("%s, %q, %q: %q, want %q", c.goos, c.tmpdir, c.own, got, c.want)
		}
	}
}

// TestRemove: removing follows no link, and is not stopped by modes.
func TestRemove(t *testing.T) {
	outside := t.TempDir()
	keep := filepath.Join(outside, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := Make("/no/such/directory")
	if err != nil {
		t.Fatal(err)
	}
	dir := made.Path()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(dir, "a\xff", "b", "c")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{deep, filepath.Dir(deep), filepath.Join(dir, "a\xff")} {
		if err := os.WriteFile(filepath.Join(d, "f"), nil, 0o400); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o100); err != nil {
			t.Fatal(err)
		}
	}
	if err := made.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}

// TestRemoveOf: with a forged record only what looks like Make's is removed.
func TestRemoveOf(t *testing.T) {
	for name, goes := range map[string]bool{"zsbx-123": true, "zsbx-caches": false, "zsbx-": false, "zsbx-1x": false} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, filepath.Base(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		err := RemoveOf(dir + "/" + name)
		if _, left := os.Lstat(filepath.Join(dir, filepath.Base(name))); (err == nil) != goes || (left != nil) != goes {
			t.Errorf("%s: %v, %v", name, err, left)
		}
	}
}

// TestRemoveLink: if a directory that is being removed is replaced with a link, nothing changes
// where the link leads.
func TestRemoveLink(t *testing.T) {
	parent, _ := filepath.EvalSymlinks(shortDir(t)) // macOS has a link here
	locked, link := filepath.Join(parent, "dir/locked"), filepath.Join(parent, "link")
	if err := errors.Join(os.MkdirAll(locked, 0o700), os.Chmod(locked, 0), os.Symlink("dir", link)); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(link); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(locked); err != nil || st.Mode().Perm() != 0 {
		t.Errorf("%v, %v", st, err)
	}
	if err := removeTree(filepath.Join(parent, "dir")); err != nil {
		t.Error("control:", err)
	}
}

// TestRemoveDeep: a command makes more levels of directories than files can be open.
func TestRemoveDeep(t *testing.T) {
	made, err := Make("/no/such/directory")
	if err != nil {
		t.Fatal(err)
	}
	top := made.Path() + "/a"
	for range 300 { // from the bottom up, because not every system can open such a long path
		err = errors.Join(err, os.Mkdir(made.Path()+"/b", 0o700), os.WriteFile(made.Path()+"/b/file", nil, 0o600))
		if _, missing := os.Lstat(top); missing == nil {
			err = errors.Join(err, os.Rename(top, made.Path()+"/b/a"))
		}
		err = errors.Join(err, os.Rename(made.Path()+"/b", top))
	}
	var was unix.Rlimit
	err = errors.Join(err, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	few := was
	few.Cur = 100
	err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	if err != nil {
		t.Fatal(err)
	}
	control := os.RemoveAll(made.Path())
	err = made.Remove()
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	if _, left := os.Lstat(made.Path()); err != nil || left == nil {
		t.Error("it was not removed:", err)
	}
	if !errors.Is(control, unix.EMFILE) {
		t.Error("control:", control)
	}
}

// shortDir returns a directory whose name leaves room for the names of sockets.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "tempdir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
