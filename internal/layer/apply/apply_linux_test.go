package apply

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
)

// oldTree makes a tree. All times in it are in the past.
const oldTree = `
mkdir -p a/deep/er gone/sub/dir closed/in todir.d swap touched/in; echo p >pair; ln pair pair.2
for f in a/one a/two a/deep/er/three gone/x gone/sub/y gone/sub/dir/z closed/f closed/in/g tofile todir.d/q swap/s; do
	echo "old $f" >$f
done
printf 'x' >a/mode; chmod 640 a/mode
echo attr >a/attr; attr a/attr user.mine old
ln -s one a/link; ln a/two a/two.hard
echo shut >shut; chmod 400 shut
find . -exec touch -h -d '2001-02-03 04:05:06.789' {} +
chmod 555 closed/in closed
`

// newTree changes it.
const newTree = `
echo 'new one' >a/one
echo more >>a/deep/er/three
chmod 600 a/mode
attr a/attr user.mine new; attr a/attr user.more 1; attr a/deep user.dir 1
rm -r gone
rm a/link; ln -s 'nowhere at all' a/link
rm tofile; mkdir tofile; echo now a directory >tofile/f
rm -r todir.d; echo now a file >todir.d
chmod 750 a/deep
rm shut; echo other >shut; chmod 440 shut
mkdir -p new/b/c new/shut; mkfifo -m 620 new/fifo; ln -s ../a new/link
echo one >new/one; ln new/one new/b/again; ln new/one top.hard
echo run >new/run; chmod 755 new/run; chmod 700 new/b
truncate -s 3M new/sparse; echo end >>new/sparse
head -c 200000 /dev/urandom >new/big; : >new/empty
echo x >new/shut/x; chmod 400 new/shut/x; chmod 500 new/shut
touch -d '2010-01-01 01:01:01.5' new/b/c new/one new/link
chmod 755 closed; echo in >closed/new; rm closed/f; chmod 555 closed
rm -r swap; mkdir swap; echo t >swap/t
printf 'q' >"$(printf 'bad\377name
two')"
echo c >a/two
attr new/run user.n 5
touch -d '2011-01-01 01:01:01.25' touched/in; : >touched/gone; rm touched/gone
ln pair pair.3
`

// TestApplyAndUndo: the tree is what the command saw, then what it was before.
func TestApplyAndUndo(t *testing.T) { bothStages(t, testApplyAndUndo) }

func testApplyAndUndo(t *testing.T) {
	w := newWorld(t, t.TempDir(), oldTree)
	old := snapshot(t, w.tree)
	w.overlay(t, newTree)
	want := snapshot(t, filepath.Join(w.top, "merged"))
	changes, _ := w.Changes()

	ended := 0
	res := w.apply(t, Options{Progress: func(done, _ int) { ended = done }})
	if res.Conflicts != nil || res.Refused != nil || res.Left != 0 || res.Applied != len(changes) {
		t.Errorf("of %d changes: %+v", len(changes), res)
	}
	same(t, "applied", snapshot(t, w.tree), want)
	if ended != len(changes) {
		t.Errorf("the last told was %d of %d", ended, len(changes))
	}
	if res := w.apply(t, Options{}); res.Applied != 0 || res.Left != 0 {
		t.Errorf("the second time: %+v", res)
	}
	if pending, err := Pending(w.Layer); pending || err != nil {
		t.Errorf("pending: %v, %v", pending, err)
	}
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Fatal(err)
	}
	same(t, "taken back", snapshot(t, w.tree), old)
	w.undone(t)
	if err := Undo(w.Layer, Options{}); err == nil {
		t.Error("nothing is there to take back, but that is no error")
	}
}

// TestLinkedPart: one name of a file that has several, then the rest. No conflict is told of what was applied.
func TestLinkedPart(t *testing.T) {
	w := newWorld(t, t.TempDir(), "mkdir d; echo old >f")
	w.overlay(t, "echo new >f; ln f d/g; ln f h")
	res := w.apply(t, Options{Paths: []string{w.tree + "/d/g"}})
	if res.Applied != 1 || res.Left != 2 {
		t.Errorf("a part: %+v", res)
	}
	res = w.apply(t, Options{})
	if res.Applied != 2 || res.Left != 0 || res.Conflicts != nil {
		t.Errorf("the rest: %+v", res)
	}
	changes, err := w.Changes()
	if err != nil || len(changes) > 0 {
		t.Errorf("%v, %v", changes, err)
	}
	sh(t, w.tree, `[ "$(cat f d/g h)" = "new
new
new" ]`)
}

// TestClosedDirectory: a directory that somebody has closed meanwhile is not opened. The control: one that was
// closed before is.
func TestClosedDirectory(t *testing.T) {
	w := newWorld(t, t.TempDir(), "mkdir before since; echo old >before/f; echo old >since/f; chmod 555 before")
	w.write(t, "mkdir before since; for d in before since; do echo new >$d/f; echo new >$d/new; done; chmod 555 before")
	sh(t, w.tree, "chmod 555 since")
	old := snapshot(t, filepath.Join(w.tree, "since"))
	res := w.apply(t, Options{})
	if res.Applied != 2 || len(res.Conflicts) != 2 || !strings.Contains(res.Conflicts[0].Conflict, "has been closed: mode 0555") {
		t.Errorf("%+v", res)
	}
	same(t, "since", snapshot(t, filepath.Join(w.tree, "since")), old)
	sh(t, w.tree, `[ "$(cat before/f before/new)" = "new
new" ]`)
}

// TestApplyPaths: a part of a layer, with the directories that it needs, then the rest.
func TestApplyPaths(t *testing.T) {
	w := newWorld(t, t.TempDir(), "mkdir d; echo old >d/keep; echo old >d/gone; touch -d 2001-01-01 d/* d .")
	old := snapshot(t, w.tree)
	w.overlay(t, "mkdir -p n/m/o; echo 1 >n/m/one; echo 2 >n/m/two; echo 3 >n/three; rm -r d")
	want := snapshot(t, filepath.Join(w.top, "merged"))
	res := w.apply(t, Options{Paths: []string{w.tree + "/n/m/two", w.tree + "/d/gone"}})
	if res.Applied != 4 || res.Left != 5 {
		t.Errorf("a part: %+v", res)
	}
	for name, is := range map[string]bool{"n/m/two": true, "n/m/one": false, "n/three": false, "d/gone": false, "d/keep": true} {
		if _, err := os.Lstat(filepath.Join(w.tree, name)); (err == nil) != is {
			t.Errorf("%s: %v", name, err)
		}
	}
	if res := w.apply(t, Options{}); res.Applied != 5 || res.Left != 0 {
		t.Errorf("the rest: %+v", res)
	}
	same(t, "applied", snapshot(t, w.tree), want)
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Fatal(err)
	}
	same(t, "taken back", snapshot(t, w.tree), old)
}

// TestConflicts: what is there is not what the layer saw.
func TestConflicts(t *testing.T) {
	const was = "mkdir dir; for f in changed gone removed dir/a dir/b mode; do echo old >$f; done"
	w := newWorld(t, t.TempDir(), was)
	w.overlay(t, "echo new >changed; echo new >gone; rm removed; rm -r dir; echo new >added; echo new >mode; echo fine >fine; mkdir sub; echo x >sub/x")
	all, err := w.Changes()
	if err != nil {
		t.Fatal(err)
	}
	const theirs = "echo theirs >changed; rm gone; echo theirs >removed; echo more >dir/c; echo theirs >added; chmod 600 mode; echo file >sub"
	for _, late := range []bool{false, true} { // the layer knows of the conflicts, or they come after it was asked
		find := w.Everything
		if late {
			sh(t, w.tree, "rm -rf *; "+was)
			find = func() ([]layer.Change, []layer.Touched, error) {
				all, touched, err := w.Everything()
				for _, c := range all {
					if c.Conflict != "" {
						t.Errorf("%s: %s", c.Path, c.Conflict)
					}
				}
				sh(t, w.tree, theirs)
				return all, touched, err
			}
		} else {
			sh(t, w.tree, theirs)
		}
		before := snapshot(t, w.tree)
		if late {
			before = map[string]string{}
		}
		res, err := apply(w.Layer, Options{}, find)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range res.Conflicts {
			got = append(got, c.Path+": "+c.Conflict)
		}
		if len(got) != 7 || res.Left != len(all)-res.Applied || res.Applied < 1 || res.Applied > 3 {
			t.Errorf("conflicts %q, result %+v", got, res)
		}
		after := snapshot(t, w.tree)
		if after["fine"] == "" {
			t.Error("what is no conflict was not applied")
		}
		sh(t, w.tree, `[ "$(cat changed removed added dir/c mode sub)" = 'theirs
theirs
theirs
more
old
file' ] && [ ! -e gone ]`)
		for _, name := range []string{"fine", ".", "dir", "dir/a", "dir/b"} {
			delete(after, name)
			delete(before, name)
		}
		if !late {
			same(t, "in spite of conflicts", after, before)
		}
		if err := Undo(w.Layer, Options{}); err != nil {
			t.Fatal(err)
		}
	}

	before := snapshot(t, w.tree)
	var decided []string
	for _, name := range []string{"changed", "gone", "removed", "dir", "added", "sub"} {
		decided = append(decided, filepath.Join(w.tree, name))
	}
	res, err := Apply(w.Layer, Options{Theirs: decided, Ours: []string{w.tree + "/mode"}})
	if err != nil || res.Conflicts != nil || res.Left != 0 {
		t.Errorf("decided: %v, %+v", err, res)
	}
	sh(t, w.tree, `[ "$(cat changed gone added sub/x mode fine)" = 'new
new
new
x
old
fine' ] && [ ! -e removed ] && [ ! -e dir ]`)
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Fatal(err)
	}
	same(t, "taken back", snapshot(t, w.tree), before)
}

// TestUndoKeepsWork: what was changed after an apply is not taken back.
func TestUndoKeepsWork(t *testing.T) {
	w := newWorld(t, t.TempDir(), "echo old >a; echo old >b; echo old >c")
	w.overlay(t, "echo new >a; echo new >b; rm c; mkdir d; echo new >d/e; echo new >f")
	w.apply(t, Options{})
	sh(t, w.tree, "echo work >a; echo work >d/more; echo work >c; rm f")
	err := Undo(w.Layer, Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"a (", "c (", "d ("} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	sh(t, w.tree, `[ "$(cat a b c d/e d/more)" = 'work
old
work
new
work' ] && [ ! -e f ]`)
	sh(t, w.tree, "rm c d/more")
	err = Undo(w.Layer, Options{})
	if err == nil || !strings.Contains(err.Error(), "a (") || strings.Contains(err.Error(), "c (") {
		t.Error(err)
	}
	sh(t, w.tree, `[ "$(cat a b c)" = 'work
old
old' ] && [ ! -e d ]`)
}

// TestUndoKeepsLooks: nor is what has the same size and times again, by any of its names.
func TestUndoKeepsLooks(t *testing.T) { bothStages(t, testUndoKeepsLooks) }

func testUndoKeepsLooks(t *testing.T) {
	w := newWorld(t, t.TempDir(), "echo old >a; echo old >b; ln b c")
	w.write(t, "echo new >a; echo new >b; ln b c; ln b n; mkdir d; echo new >d/e; echo new >d/f; ln b d/g")
	w.apply(t, Options{})
	sh(t, w.tree, "touch -r a ref; echo abc >a; touch -r ref a; touch -r d/e ref; echo abc >d/e; touch -r ref d/e; rm ref")
	err := Undo(w.Layer, Options{})
	if err == nil || !strings.Contains(err.Error(), "/a (it has changed)") || !strings.Contains(err.Error(), "/d (it has changed)") {
		t.Error(err)
	}
	sh(t, w.tree, `[ "$(cat a b c d/e)" = 'abc
old
old
abc' ] && [ ! -e n ] && [ b -ef c ]`)

	w = newWorld(t, t.TempDir(), "echo old >a; echo old >b; ln b c")
	old := snapshot(t, w.tree)
	w.write(t, "echo new >a; echo new >b; ln b c; ln b n; mkdir d; echo new >d/e; ln b d/g")
	w.apply(t, Options{})
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Error(err)
	}
	same(t, "taken back", snapshot(t, w.tree), old)
}

// TestLeft: what was applied is not left, even if it has changed since or has gone. The controls: what was not applied of
// a new directory, even if somebody has made it by then, and what was taken back.
func TestLeft(t *testing.T) {
	w := newWorld(t, t.TempDir(), "echo old >a; echo old >b; mkdir gone; echo old >gone/x")
	w.write(t, `mknod gone c 0 0; echo new >a; echo new >b; mkdir -p n/sub/deep; for f in 1 2 sub/3 sub/deep/4; do echo new >n/$f; done
echo set >n/set; chmod 4755 n/set`)
	left := func(what string, want ...string) {
		t.Helper()
		changes, err := w.Changes()
		if err != nil {
			t.Fatal(err)
		}
		changes, err = Left(w.Layer, changes)
		var got []string
		for _, c := range changes {
			got = append(got, c.Path)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %q, not %q", what, err, got, want)
		}
	}
	all := []string{"a", "b", "gone", "gone/x", "n", "n/1", "n/2", "n/set", "n/sub", "n/sub/3", "n/sub/deep", "n/sub/deep/4"}
	left("at first", all...)
	w.apply(t, Options{Paths: []string{w.tree + "/a", w.tree + "/n/1"}})
	rest := []string{"b", "gone", "gone/x", "n/2", "n/set", "n/sub", "n/sub/3", "n/sub/deep", "n/sub/deep/4"}
	left("after a part", rest...)
	sh(t, w.tree, "rm a; echo mine >a; rm n/1; echo mine >n/2")
	left("changed outside", rest...)
	w.apply(t, Options{Theirs: []string{w.tree + "/n/2"}})
	left("after the rest", "n/set")
	sh(t, w.tree, "rm -r n/sub; rm b n/2; echo mine >b; echo mine >n/2; mkdir gone")
	left("all changed outside", "n/set")
	sh(t, w.tree, "rmdir gone") // what is taken back is left again, and what stays is not
	if err := Undo(w.Layer, Options{}); err == nil {
		t.Error("all was taken back")
	}
	left("taken back", "gone", "gone/x", "n/set", "n/sub", "n/sub/3", "n/sub/deep", "n/sub/deep/4")
}

// TestRefused: what is refused is named, and the rest applied.
func TestRefused(t *testing.T) {
	w := newWorld(t, t.TempDir(), "")
	w.write(t, "mkdir d; echo 1 >d/one; echo 2 >d/two; echo 3 >d/set; chmod 4755 d/set; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"d/socket\")'")
	res, err := apply(w.Layer, Options{}, func() ([]layer.Change, []layer.Touched, error) {
		all, touched, err := w.Everything()
		for i := range all {
			if all[i].Path == "d/two" {
				all[i].Refused = "for a test"
			}
		}
		return all, touched, err
	})
	if err != nil || len(res.Refused) != 3 || res.Applied != 2 || res.Left != 3 {
		t.Errorf("%v, %+v", err, res)
	}
	got := snapshot(t, w.tree)
	if len(got) != 3 || got["d/one"] == "" {
		t.Errorf("%q", got)
	}
}

// TestLinked: a file gets one more name, without the overlay's attributes, unless a process has it open for writing.
// What it writes later does not reach the tree.
func TestLinked(t *testing.T) {
	w := newWorld(t, t.TempDir(), "echo old >changed; echo old >held; attr changed user.mine 1")
	old := snapshot(t, w.tree)
	w.overlay(t, `echo new >>changed; echo new >new; ln -s new link; echo text >also
(exec sleep 600 >>held 2>>also </dev/null) &
echo $! >../pid`)
	pid, err := os.ReadFile(filepath.Join(w.top, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	fd := "/proc/" + strings.TrimSpace(string(pid)) + "/fd/"
	w.apply(t, Options{})
	for name, linked := range map[string]bool{"changed": true, "new": true, "link": true, "held": false, "also": false} {
		var tree, upper unix.Stat_t
		err := errors.Join(unix.Lstat(w.tree+"/"+name, &tree), unix.Lstat(w.upper+"/"+name, &upper))
		if err != nil || (tree.Ino == upper.Ino) != linked {
			t.Errorf("%s: %v, inode %d, %d in the layer", name, err, tree.Ino, upper.Ino)
		}
	}
	if n, err := unix.Llistxattr(w.tree+"/changed", nil); n != len("user.mine")+1 || err != nil {
		t.Errorf("%d bytes of attributes, %v", n, err)
	}
	for _, n := range []string{"1", "2"} {
		if err := os.WriteFile(fd+n, []byte("late"), 0); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, w.upper, `[ "$(cat held also)" = latelate ]`)
	sh(t, w.tree, `[ "$(cat held also)" = 'old
text' ]; kill `+string(pid))
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Fatal(err)
	}
	same(t, "taken back", snapshot(t, w.tree), old)
	sh(t, w.upper, `[ "$(cat new)" = new ]`)
}

// TestFull: nothing has changed if the file system is full.
func TestFull(t *testing.T) {
	if os.Getenv("ZSBX_FULL") == "" {
		inTmpfs(t, "TestFull", "ZSBX_FULL")
		return
	}
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", tree, "tmpfs", 0, "size=300k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(tree, unix.MNT_DETACH)
	w := newWorld(t, filepath.Dir(tree), "echo old >a; touch -d 2001-01-01 a .")
	w.write(t, "echo new >a; head -c 400000 /dev/zero | tr '\\0' x >big; mkdir d; echo x >d/x")
	old := snapshot(t, w.tree)
	_, err := Apply(w.Layer, Options{})
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("full: %v", err)
	}
	same(t, "full", snapshot(t, w.tree), old)
	rest := Options{Paths: []string{w.tree + "/a", w.tree + "/d"}}
	w.apply(t, rest)
	// The layer is on another file system: what was there before is kept in the tree, until it is dropped.
	kept := func() []string {
		list, _ := filepath.Glob(w.tree + "/.zsbx-try-*")
		return list
	}
	if len(kept()) != 1 {
		t.Errorf("%q", kept())
	}
	if err := Undo(w.Layer, Options{}); err != nil {
		t.Fatal(err)
	}
	same(t, "taken back", snapshot(t, w.tree), old)
	w.apply(t, rest)
	if err := Drop(w.Layer, false); err != nil {
		t.Fatal(err)
	}
	if kept() != nil {
		t.Errorf("%q", kept())
	}
}
