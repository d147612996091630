package apply

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/safepath"
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

// TestRaceKinds is TestRace for all kinds of changes, in directories that are closed, too, and for Undo and Drop. The
// threads rename, link and make entries in the tree as they like, but nothing of outside is theirs.
func TestRaceKinds(t *testing.T) {
	defer func() { inTrees = false }()
	applied := 0
	for round := range *races / 200 {
		inTrees = round%2 == 0
		w := kindsWorld(t)
		before := snapshot(t, w.outside)
		stop := shuffle(t, w, int64(round))
		res, err := Apply(w.Layer, Options{})
		if round%3 == 0 {
			_ = Undo(w.Layer, Options{})
		}
		if round%4 == 0 {
			_ = Drop(w.Layer, false)
		}
		stop()
		if err != nil {
			t.Log(err)
		}
		applied += res.Applied
		same(t, fmt.Sprint("outside, round ", round), snapshot(t, w.outside), before)
		w.whole(t)
	}
	if applied == 0 {
		t.Error("nothing was applied under attack")
	}
}

// kindsWorld makes a tree, the same outside, and a layer that changes, adds, removes, closes and links.
func kindsWorld(t *testing.T) *world {
	top := memory(t)
	w := &world{top: top, tree: top + "/tree", outside: top + "/outside"}
	sh(t, top, `for p in tree outside; do
	mkdir -p $p/d/e/f $p/gone/x/y $p/closed $p/mode $p/sw
	for dir in . d d/e d/e/f gone gone/x gone/x/y closed mode sw; do for n in a b c; do echo old >$p/$dir/$n; done; done
	chmod 555 $p/closed
done`)
	w.layer(t)
	sh(t, w.upper, `mkdir -p d/e/f new/in closed mode
for dir in . d d/e d/e/f closed mode new new/in; do for n in a b added; do echo new >$dir/$n; done; done
for dir in . d d/e closed; do mknod $dir/c c 0 0; done
mknod gone c 0 0; ln -s ../outside out; ln d/a d/another; echo new >sw; chmod 555 closed; chmod 700 mode`)
	w.markCopied(t)
	w.freeze(t)
	return w
}

// whole fails the test if a file of the tree is half of something.
func (w *world) whole(t *testing.T) {
	err := filepath.WalkDir(w.tree, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(name)
		if s := string(b); err == nil && s != "old\n" && s != "new\n" {
			t.Errorf("%s has %q", name, s)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// shuffle begins two threads. They never leave the tree, but for links that they make.
func shuffle(t *testing.T, w *world, seed int64) (stop func()) {
	dirs := []string{".", "d", "d/e", "gone", "gone/x", "closed", "mode", "new"}
	names := []string{"a", "b", "c", "added", "d", "e", "f", "gone", "x", "closed", "mode", "new", "sw", "out", ".zsbx-try-" + w.Session + "-1"}
	root, err := unix.Open(w.tree, anyDir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	var wait sync.WaitGroup
	for n := range int64(2) {
		r := rand.New(rand.NewSource(2*seed + n))
		act := func() {
			from, err1 := safepath.OpenAt(root, dirs[r.Intn(len(dirs))], anyDir)
			to, err2 := safepath.OpenAt(root, dirs[r.Intn(len(dirs))], anyDir)
			x := names[r.Intn(len(names))]
			y := names[r.Intn(len(names))]
			if err1 == nil && err2 == nil {
				switch r.Intn(6) {
				case 0, 1:
					_ = unix.Renameat2(from, x, to, y, unix.RENAME_EXCHANGE)
				case 2:
					_ = unix.Renameat2(from, x, to, y, unix.RENAME_NOREPLACE)
				case 3:
					_ = unix.Linkat(from, x, to, y, 0)
				case 4:
					_ = unix.Symlinkat(w.outside, to, y)
				case 5:
					_ = unix.Mkdirat(to, y, 0o755)
				}
			}
			for _, fd := range []int{from, to} {
				if fd >= 0 {
					unix.Close(fd)
				}
			}
		}
		wait.Go(func() {
			for !over.Load() {
				act()
			}
		})
	}
	return func() {
		over.Store(true)
		wait.Wait()
		unix.Close(root)
	}
}
