package apply

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

var races = flag.Int("races", 2000, "how many renames TestRace makes under attack")

// TestRace: two threads exchange directories of the tree with links that lead out, and files with
// hard links of files outside, while layers are applied. Nothing outside is changed.
func TestRace(t *testing.T) {
	const files = 20
	defer func() { inTrees = false }()
	acts := 0
	applied := 0
	for i := 0; acts < *races; i++ {
		w, before := raceWorld(t, files)
		inTrees = i%2 == 0
		stop := attack(t, w, files)
		res, err := Apply(w.Layer, Options{})
		stop()
		if err != nil && acts == 0 {
			t.Log(err)
		}
		acts += 3 * files
		applied += res.Applied
		same(t, fmt.Sprint("outside, round ", i), snapshot(t, w.outside), before)
		if t.Failed() {
			return
		}
		_ = os.RemoveAll(w.top)
	}
	t.Logf("%d of %d changes were applied under attack", applied, acts)
	if applied == 0 || applied == acts {
		t.Error("there was no race")
	}
}

// TestRaceControl: the same race catches an apply by paths.
func TestRaceControl(t *testing.T) {
	const files = 20
	for range 500 {
		w, before := raceWorld(t, files)
		stop := attack(t, w, files)
		for i := range files {
			name := fmt.Sprintf("%s/d/f%d", w.tree, i)
			os.WriteFile(name, []byte("new"), 0o600)
			os.Rename(name, name+".old")
			os.WriteFile(name+".new", []byte("new"), 0o600)
		}
		stop()
		if fmt.Sprint(snapshot(t, w.outside)) != fmt.Sprint(before) {
			return
		}
		_ = os.RemoveAll(w.top)
	}
	t.Error("what goes by paths was not caught")
}

// raceWorld makes a tree with a directory of which a layer changes, adds and removes files.
func raceWorld(t *testing.T, files int) (*world, map[string]string) {
	top := memory(t)
	w := &world{top: top, tree: top + "/tree", outside: top + "/outside"}
	for _, dir := range []string{w.tree, w.tree + "/d", w.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range files {
		for _, name := range []string{fmt.Sprint("f", i), fmt.Sprint("gone", i)} {
			write(filepath.Join(w.tree, "d", name), "old")
			write(filepath.Join(w.outside, name), "outside")
		}
	}
	w.layer(t)
	if err := os.Mkdir(w.upper+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		write(fmt.Sprintf("%s/d/f%d", w.upper, i), "new")
		write(fmt.Sprintf("%s/d/new%d", w.upper, i), "new")
		if err := unix.Mknod(fmt.Sprintf("%s/d/gone%d", w.upper, i), unix.S_IFCHR, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range files {
		for _, name := range []string{fmt.Sprint("f", i), fmt.Sprint("gone", i)} {
			if err := os.Link(filepath.Join(w.outside, name), filepath.Join(w.top, "hard-"+name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	os.Chmod(w.upper+"/d", 0o700)
	w.markCopied(t)
	w.freeze(t)
	if err := os.Symlink(w.outside, w.tree+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.outside, w.tree+"/link2"); err != nil {
		t.Fatal(err)
	}
	return w, snapshot(t, w.outside)
}

// attack begins two threads.
func attack(t *testing.T, w *world, files int) (stop func()) {
	var over atomic.Bool
	var wait sync.WaitGroup
	exchange := func(a, b string) {
		_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(w.tree, a), unix.AT_FDCWD, filepath.Join(w.tree, b), unix.RENAME_EXCHANGE)
	}
	wait.Go(func() {
		for n := 0; !over.Load(); n++ {
			exchange("d", "link")
			if n%100 == 0 {
				exchange(".zsbx-try-"+w.Session+"-1", "link2")
			}
		}
	})
	wait.Go(func() {
		for i := 0; !over.Load(); i = (i + 1) % files {
			for _, dir := range []string{"d", "link"} {
				for _, name := range []string{fmt.Sprint("f", i), fmt.Sprint("gone", i)} {
					var st unix.Stat_t
					at := filepath.Join(w.tree, dir)
					if unix.Lstat(at, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
						continue
					}
					fd, err := unix.Open(at, anyDir, 0) // never the link: the attack itself leaves alone what is outside
					if err != nil {
						continue
					}
					unix.Renameat2(unix.AT_FDCWD, w.top+"/hard-"+name, fd, name, unix.RENAME_EXCHANGE)
					unix.Close(fd)
				}
			}
		}
	})
	return func() {
		over.Store(true)
		wait.Wait()
		var st unix.Stat_t
		if unix.Lstat(w.tree+"/link", &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			os.Chmod(w.tree+"/link", 0o755)
		}
	}
}
