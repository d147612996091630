//go:build unix

package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// TestOpenBelow: a file below a directory is opened, but not through a link, and nothing outside.
func TestOpenBelow(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "dir")
	for _, name := range []string{"secret", "dir/sub/file"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"in": "sub", "file": "sub/file", "out": "..", "abs": top} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for rel, want := range map[string]bool{
		".": true, "sub": true, "sub/file": true,
		"in/file": false, "file": false, "out/secret": false, "abs/secret": false, "../secret": false,
		"sub/../../secret": false, "none": false, "": false, filepath.Join(top, "secret"): false,
	} {
		f, err := OpenBelow(held, rel, os.O_RDONLY)
		if (err == nil) != want {
			t.Errorf("%q: %v", rel, err)
		}
		if err == nil {
			f.Close()
		}
	}
	if _, err := OpenBelow(nil, "sub", os.O_RDONLY); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}

// TestOpenLong: a path that is too long for one system call is opened in pieces, and a link in any of them is an
// error.
func TestOpenLong(t *testing.T) {
	top, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	name := strings.Repeat("d", 200)
	const levels = 50
	at := int(top.Fd())
	for i := range levels {
		if err := unix.Mkdirat(at, name, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, link := range []string{"same", "up"} {
			to := map[string]string{"same": name, "up": ".."}[link]
			if err := unix.Symlinkat(to, at, link); err != nil {
				t.Fatal(err)
			}
		}
		fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			unix.Close(at)
		}
		at = fd
	}
	unix.Close(at)
	path := func(link string, i int) string {
		all := slices.Repeat([]string{name}, levels)
		all[i] = link
		return strings.Join(all, "/")
	}
	f, err := OpenBelow(top, path(name, 0), os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for i := range levels {
		for _, link := range []string{"same", "up", "none"} {
			if f, err := OpenBelow(top, path(link, i), os.O_RDONLY); err == nil {
				f.Close()
				t.Errorf("%s at %d was opened", link, i)
			}
		}
	}
	if _, err := OpenBelow(top, strings.Repeat("d", 5000), os.O_RDONLY); err == nil {
		t.Error("a name that is too long was opened")
	}
}

// TestRemoveTreeTwice removes a tree in two threads: each says that it is gone only when it is.
func TestRemoveTreeTwice(t *testing.T) {
	for range 50 {
		top := filepath.Join(t.TempDir(), "top")
		for n := range 4 {
			deep := filepath.Join(top, strings.Repeat("d/", n), strconv.Itoa(n))
			if err := os.MkdirAll(filepath.Join(deep, "x/y/z"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		errs := make(chan error)
		for range 2 {
			go func() {
				err := RemoveTree(top)
				if _, left := os.Lstat(top); err == nil && !errors.Is(left, fs.ErrNotExist) {
					err = fmt.Errorf("said to be removed: %v", left)
				}
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs); err != nil {
			t.Fatal(err)
		}
	}
}
