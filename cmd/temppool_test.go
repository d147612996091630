//go:build linux

// On macOS nothing is laid aside: the directories lie in the user's own.

package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPool: a directory that was laid aside comes back under another name, and
// only as it was.
func TestPool(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		laid  bool // is it laid aside
	}{
		{"untouched", func(string) error { return nil }, true},
		{"a file", func(dir string) error { return os.WriteFile(filepath.Join(dir, "f"), nil, 0o600) }, false},
		{"a file below", func(dir string) error { return os.WriteFile(filepath.Join(dir, "run", "f"), nil, 0o600) }, false},
		{"without run", func(dir string) error { return os.Remove(filepath.Join(dir, "run")) }, false},
		{"a link for run", func(dir string) error {
			run := filepath.Join(dir, "run")
			return errors.Join(os.Remove(run), os.Symlink("/etc", run))
		}, false},
		{"open to others", func(dir string) error { return os.Chmod(dir, 0o755) }, false},
		{"run open to others", func(dir string) error { return os.Chmod(filepath.Join(dir, "run"), 0o755) }, false},
		{"sticky", func(dir string) error { return os.Chmod(dir, 0o700|os.ModeSticky) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := os.MkdirTemp(poolParent, "zsbx-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "run"), 0o700), c.spoil(dir)); err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			drainPool(t)
			if got := layAside(dir); got != c.laid {
				t.Fatalf("laid aside: %v, want %v", got, c.laid)
			}
			if !c.laid {
				return
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("the name is still there: %v", err)
			}
			again, held := takeUp(poolParent)
			defer unix.Close(held)
			if again == "" {
				t.Fatal("nothing was taken up")
			}
			defer os.RemoveAll(again)
			if got, err := os.Stat(again); err != nil || !os.SameFile(st, got) || again == dir {
				t.Errorf("took up %s for %s, %v", again, dir, err)
			}
		})
	}
}

// TestPoolIsLookedAt: what somebody did to a directory while it was aside
// comes to light.
func TestPoolIsLookedAt(t *testing.T) {
	drainPool(t)
	dir, held, err := makeTempDir(poolParent)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)
	defer os.RemoveAll(dir)
	if !layAside(dir) {
		t.Fatal("not laid aside")
	}
	pool, err := openPool(false)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(pool)
	aside := filepath.Join(poolParent, ".zsbx-"+strconv.Itoa(os.Geteuid()))
	if err := os.WriteFile(filepath.Join(aside, "0", "planted"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := takeUp(poolParent); got != "" {
		os.RemoveAll(got)
		t.Errorf("took up %s with a file in it", got)
	}
	if left, err := os.ReadDir(aside); err != nil || len(left) > 0 {
		t.Errorf("left aside: %v, %v", left, err)
	}
}

// TestPoolOfOthers: a directory that is not the user's alone is no pool.
func TestPoolOfOthers(t *testing.T) {
	base := t.TempDir()
	own := filepath.Join(base, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"open":   func(n string) error { return errors.Join(os.Mkdir(n, 0o700), os.Chmod(n, 0o770)) },
		"a link": func(n string) error { return os.Symlink(own, n) },
		"a file": func(n string) error { return os.WriteFile(n, nil, 0o700) },
	} {
		n := filepath.Join(base, name)
		if err := make(n); err != nil {
			t.Fatal(err)
		}
		if fd, err := openOwnDir(n); err == nil {
			unix.Close(fd)
			t.Errorf("%s was taken for the user's own", name)
		}
	}
	fd, err := openOwnDir(own)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}

// drainPool takes up what is aside.
func drainPool(t *testing.T) {
	t.Helper()
	for dir, held := takeUp(poolParent); dir != ""; dir, held = takeUp(poolParent) {
		unix.Close(held)
		if err := removeTempDir(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTempHint: a hint is something that works.
func TestTempHint(t *testing.T) {
	dir := t.TempDir()
	if got := tempHint(dir); got != "export TMPDIR="+dir {
		t.Errorf("%q", got)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if got := tempHint(dir + "/none"); got != "--shared-tmp" {
		t.Errorf("%q", got)
	}
}

// TestPoolForgets: what a command did to a directory's times does not reach the
// next one, and one that has grown does not come back.
func TestPoolForgets(t *testing.T) {
	drainPool(t)
	dir, held, err := makeTempDir(poolParent)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)
	old := time.Unix(915148800, 0)
	run := filepath.Join(dir, "run")
	if err := errors.Join(os.Chtimes(run, old, old), os.Chtimes(dir, old, old)); err != nil {
		t.Fatal(err)
	}
	if !layAside(dir) {
		t.Fatal("not laid aside")
	}
	again, held2 := takeUp(poolParent)
	defer unix.Close(held2)
	defer os.RemoveAll(again)
	for _, d := range []string{again, filepath.Join(again, "run")} {
		var st unix.Stat_t
		if err := unix.Stat(d, &st); err != nil {
			t.Fatal(err)
		}
		for _, got := range []unix.Timespec{st.Atim, st.Mtim} {
			if age := time.Since(time.Unix(got.Unix())); age > time.Minute {
				t.Errorf("%s is %v old", d, age)
			}
		}
	}
	st, err := os.Stat(again)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 { // names that take more than a block of a directory
		_ = os.WriteFile(filepath.Join(again, fmt.Sprintf("%0200d", i)), nil, 0o600)
	}
	for i := range 500 {
		_ = os.Remove(filepath.Join(again, fmt.Sprintf("%0200d", i)))
	}
	if now, err := os.Stat(again); err != nil || now.Size() > st.Size() && layAside(again) {
		t.Errorf("a directory that grew from %d to %d bytes was laid aside: %v", st.Size(), now.Size(), err)
	}
}
