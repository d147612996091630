package track

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Dirs returns the directories in which sessions are looked for, in order.
func (s *Store) Dirs() []string {
	d := make([]string, 0, len(s.dirs))
	for _, p := range s.dirs {
		d = append(d, p.dir())
	}
	return d
}

func storeAt(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenStoreAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpenStore(t *testing.T) {
	t.Setenv("HOME", "/home/x")
	t.Setenv("TMPDIR", "/scratch")
	t.Setenv("XDG_STATE_HOME", "relative") // the specification says to ignore it
	s, err := OpenStore()
	if err != nil || s.Dirs()[0] != "/home/x/.local/state/zsbx/sessions" || !strings.HasPrefix(s.Dirs()[1], "/scratch/zsbx-") {
		t.Errorf("%v, %v", s.Dirs(), err)
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	s, err = OpenStore()
	if err != nil || s.Dirs()[0] != "/state/zsbx/sessions" {
		t.Errorf("%v, %v", s.Dirs(), err)
	}
	if _, err := OpenStoreAt("here"); err == nil {
		t.Error("a relative directory was accepted")
	}
}

// TestStoreFallsBack: if the first directory can't be written, the second is used, and both are
// read.
func TestStoreFallsBack(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Store{dirs: []storeDir{{parent: filepath.Join(base, "file", "zsbx")}, {parent: filepath.Join(base, "tmp"), nofollow: true}}}
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	d, f, err := s.create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := s.Find("f81d"); err != nil || got != id {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Remove(d.file(id)); err != nil {
		t.Error(err)
	}
}

// TestStoreWithUnusablePlace: an unusable directory does not affect what is found in another.
func TestStoreWithUnusablePlace(t *testing.T) {
	base := t.TempDir()
	bad := filepath.Join(base, "bad")
	if err := os.MkdirAll(filepath.Join(bad, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(bad, "sessions"), 0o755); err != nil { // refused, since others may read it
		t.Fatal(err)
	}
	s := &Store{dirs: []storeDir{{parent: bad}, {parent: filepath.Join(base, "good")}}}
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	_, f, err := s.create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := s.Find(id); err != nil {
		t.Errorf("a session in the good place: %v", err)
	}
	if _, err := s.Find("aaaa4fae-7dec-41d0-a765-00a0c91e6bf6"); !errors.Is(err, errForeign) {
		t.Errorf("a session in neither place: %v", err)
	}
}

// TestStoreRefuses: a directory that others could have made or can change.
func TestStoreRefuses(t *testing.T) {
	dir := t.TempDir()
	s := storeAt(t, dir)
	if _, _, err := s.create("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"); err != nil {
		t.Fatal(err)
	}
	sessions := s.Dirs()[0]
	if fi, err := os.Stat(sessions); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	t.Run("mode", func(t *testing.T) {
		defer os.Chmod(sessions, 0o700)
		_ = os.Chmod(sessions, 0o755)
		if _, err := s.Find("f"); !errors.Is(err, errForeign) {
			t.Error(err)
		}
	})
	t.Run("parent's mode", func(t *testing.T) {
		defer os.Chmod(dir, 0o700)
		_ = os.Chmod(dir, 0o777)
		if _, err := s.Find("f"); !errors.Is(err, errForeign) {
			t.Error(err)
		}
	})
	t.Run("symlink", func(t *testing.T) {
		other := t.TempDir()
		if err := os.Symlink(sessions, filepath.Join(other, "sessions")); err != nil {
			t.Fatal(err)
		}
		if _, err := storeAt(t, other).Find("f"); !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) && !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		link := filepath.Join(t.TempDir(), "tmp")
		_ = os.Symlink(dir, link)
		two := &Store{dirs: []storeDir{{parent: link, nofollow: true}}}
		if _, _, err := two.create("f81d4fae-7dec-11d0-a765-00a0c91e6bf7"); err == nil {
			t.Error("a planted symbolic link was followed")
		}
	})
}

// TestStrangeFiles: files that do not belong in the store are not followed, read for ever, or
// listed as sessions.
func TestStrangeFiles(t *testing.T) {
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	for name, put := range map[string]func(path string) error{
		"fifo":      func(p string) error { return unix.Mkfifo(p, 0o600) },
		"symlink":   func(p string) error { return os.Symlink("/etc/passwd", p) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"huge":      func(p string) error { return os.WriteFile(p, make([]byte, 2*maxRecord), 0o600) },
		"garbage":   func(p string) error { return os.WriteFile(p, []byte(strings.Repeat(" ", 32)+"{]"), 0o600) },
		"other's": func(p string) error {
			return os.WriteFile(p, []byte(strings.Repeat(" ", 32)+`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf7"}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeAt(t, t.TempDir())
			d, f, err := s.create(id)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			if err := errors.Join(os.Remove(d.file(id)), put(filepath.Join(s.Dirs()[0], id+sessionFile))); err != nil {
				t.Fatal(err)
			}
			if f, err := d.load(id); err != nil || f.damage == nil || f.recorded() {
				t.Errorf("it was read: %+v, %v", f, err)
			}
			if _, err := s.Find(id); err != nil {
				t.Errorf("the session can't be found: %v", err)
			}
		})
	}
	s := storeAt(t, t.TempDir())
	d, f, err := s.create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []string{"x", "@name", "..", id, id + ".tmp", strings.ToUpper(id) + sessionFile, "x" + sessionFile} {
		_ = os.WriteFile(filepath.Join(s.Dirs()[0], n), nil, 0o600)
	}
	if ids, err := d.ids(); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
}

// named returns a record with a name, as for a new session.
func named(id, name string, age time.Duration) *Record {
	return &Record{Version: recordVersion, ID: id, Name: name, Started: time.Now().Add(-age)}
}

func TestFind(t *testing.T) {
	s := storeAt(t, t.TempDir())
	ids := []string{"aaaa4fae-7dec-41d0-a765-00a0c91e6bf6", "aabb4fae-7dec-41d0-a765-00a0c91e6bf6", "bbbb4fae-7dec-41d0-a765-00a0c91e6bf6"}
	for _, id := range ids {
		d, f, err := s.create(id)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if id == ids[2] {
			if err := d.claim(f, named(id, "aaaa", 0)); err != nil { // a name takes precedence over a prefix
				t.Fatal(err)
			}
		}
	}
	for ref, want := range map[string]string{ids[0]: ids[0], "aab": ids[1], "b": ids[2], "aaaa": ids[2], "AAB": ids[1], "aaaa4": ids[0]} {
		if got, err := s.Find(ref); err != nil || got != want {
			t.Errorf("%q: %q, %v", ref, got, err)
		}
	}
	if _, err := s.Find("aa"); !errors.Is(err, errAmbiguous) || !strings.Contains(err.Error(), ids[0]+", "+ids[1]) {
		t.Error(err)
	}
	for _, ref := range []string{"", "c", "../x", "@aaaa", "no-such"} {
		if got, err := s.Find(ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %q, %v", ref, got, err)
		}
	}
}

// TestNames: only one live session at a time has a name. A dead one frees its name. A name
// means the last session that had it.
func TestNames(t *testing.T) {
	s := storeAt(t, t.TempDir())
	const first, second = "aaaa4fae-7dec-41d0-a765-00a0c91e6bf6", "bbbb4fae-7dec-41d0-a765-00a0c91e6bf6"
	a, af, err := s.create(first)
	if err != nil {
		t.Fatal(err)
	}
	b, bf, err := s.create(second)
	if err != nil {
		t.Fatal(err)
	}
	defer bf.Close()
	if err := a.claim(af, named(first, "x", time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := b.claim(bf, named(second, "x", 0)); !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), first) {
		t.Fatal(err)
	}
	af.Close() // a killed supervisor's lock is released in the same way
	if err := b.claim(bf, named(second, "x", 0)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Find("x"); err != nil || got != second {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNamesAtOnce: of many that claim a name at once one gets it.
func TestNamesAtOnce(t *testing.T) {
	s := storeAt(t, t.TempDir())
	var got atomic.Int32
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			id := fmt.Sprintf("%08x-7dec-41d0-a765-00a0c91e6bf6", n)
			d, f, err := s.create(id)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { f.Close() })
			switch err := d.claim(f, named(id, "x", 0)); {
			case err == nil:
				got.Add(1)
			case !errors.Is(err, ErrNameTaken):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d have the name", got.Load())
	}
}

// TestNoHomeIsMade: a missing home directory is not made, and the second directory is used. Missing
// directories below an existing one are made.
func TestNoHomeIsMade(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("TMPDIR", base)
	for _, there := range []bool{false, true} {
		home := filepath.Join(base, "home")
		t.Setenv("HOME", home)
		if there {
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s, err := OpenStore()
		if err != nil {
			t.Fatal(err)
		}
		d, f, err := s.create("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, err := os.Stat(filepath.Join(home, ".local")); (err == nil) != there || strings.HasPrefix(d.dir(), home) != there {
			t.Errorf("a home that is there %v: %v, session at %s", there, err, d.dir())
		}
	}
	t.Setenv("HOME", filepath.Join(base, "none"))
	t.Setenv("TMPDIR", filepath.Join(base, "home", "no-such-file", "x"))
	if err := os.WriteFile(filepath.Join(base, "home", "no-such-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(Options{}); !errors.Is(err, ErrNoDir) {
		t.Errorf("without any place: %v", err)
	}
}
