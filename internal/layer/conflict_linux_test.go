package layer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestConflicts: what changes outside is a conflict if it changes what the command saw or made, and nothing else
// is. Each case runs with the change outside while the command runs, and with the change after Freeze.
func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  string
		script  string
		outside string
		during  []string
		after   []string
	}{
		{"another file", "echo a >f; echo b >g", "echo c >>f", "echo d >g; echo e >h", []string{"~ f"}, []string{"~ f"}},
		{"content", "echo a >f", "echo c >>f", "echo d >f",
			[]string{"~ f !" + conflictLate}, []string{"~ f !" + conflictChanged}},
		{"only its time", "echo a >f", "echo c >>f", "touch f",
			[]string{"~ f !" + conflictLate}, []string{"~ f"}},
		{"another file of the same content", "echo a >f", "echo c >>f", "cp f g; mv g f",
			[]string{"~ f !" + conflictLate}, []string{"~ f"}},
		{"mode", "echo a >f", "echo c >>f", "chmod 600 f",
			[]string{"~ f !" + conflictLate}, []string{"~ f !" + conflictChanged}},
		{"a link", "ln -s a l", "ln -sf b l", "ln -sf c l",
			[]string{"~ l !" + conflictLate}, []string{"~ l !" + conflictChanged}},
		{"a file becomes a FIFO", "echo a >f", "echo c >>f", "rm f; mkfifo f",
			[]string{"~ f !" + conflictLate}, []string{"~ f !" + conflictChanged}},
		{"a file becomes a link", "echo a >f", "echo c >>f", "rm f; ln -s /etc/passwd f",
			[]string{"~ f !" + conflictLate}, []string{"~ f !" + conflictChanged}},
		{"removed outside", "echo a >f", "echo c >>f", "rm f",
			[]string{"+ f !" + conflictLost}, []string{"~ f !" + conflictRemoved}},
		{"renamed inside", "echo a >f; echo b >x", "mv f g; echo c >>g", "rm x", []string{"- f", "+ g"}, []string{"- f", "+ g"}},
		{"another name inside", "echo a >f; echo b >x", "ln f g", "rm x", []string{"~ f", "+ g"}, []string{"~ f", "+ g"}},
		{"removed by both", "echo a >f; mkdir d; echo b >d/g", "rm -r f d", "rm -r f d", nil, nil},
		{"removed and changed outside", "echo a >f", "rm f", "echo b >f",
			[]string{"- f !" + conflictLate}, []string{"- f !" + conflictChanged}},
		{"removed and touched outside", "echo a >f", "rm f", "touch f",
			[]string{"- f !" + conflictLate}, []string{"- f"}},
		{"made by both", "", "echo a >f", "echo b >f",
			[]string{"~ f !" + conflictLate}, []string{"+ f !" + conflictMade}},
		{"the same made by both", "", "echo a >f; touch -d 2001-01-01 f; chmod 644 f",
			"echo a >f; touch -d 2001-01-01 f; chmod 644 f", nil, nil},
		{"a directory made by both", "", "mkdir d; chmod 755 d; echo a >d/f", "mkdir d; chmod 755 d; echo b >d/g",
			[]string{"+ d/f"}, []string{"+ d/f"}},
		{"a directory moved in", "mkdir -p ../old/x; echo a >../old/x/f; echo b >../old/g", "mkdir d; echo a >d/f", "mv ../old d",
			[]string{"+ d/f"}, []string{"+ d/f"}},
		{"a directory with the same name moved in", "mkdir -p ../old/x; echo a >../old/x/f; echo b >../old/g",
			"mkdir -p d/x; echo a >d/x/f; ln -s a d/g", "mv ../old d",
			[]string{"~ d/g !" + conflictLate, "~ d/x/f !" + conflictLate},
			[]string{"+ d/g !" + conflictMade, "+ d/x/f !" + conflictMade}},
		{"a directory that is removed gets a file", "mkdir d; echo a >d/f", "rm -r d", "echo b >d/g",
			[]string{"- d !" + conflictLate, "- d/f !" + conflictLate, "- d/g !" + conflictLate},
			[]string{"- d !" + conflictNew, "- d/f"}},
		{"a directory that becomes a file gets a file", "mkdir d; echo a >d/f", "rm -r d; echo c >d", "echo b >d/g",
			[]string{"~ d !" + conflictLate, "- d/f !" + conflictLate, "- d/g !" + conflictLate},
			[]string{"~ d !" + conflictNew, "- d/f"}},
		{"a directory that was made again gets a file", "mkdir d; echo a >d/f", "rm -r d; mkdir d; echo c >d/h", "echo b >d/g",
			[]string{"- d/f !" + conflictLate, "- d/g !" + conflictLate, "+ d/h"},
			[]string{"- d/f", "+ d/h"}},
		{"the directory above has gone", "mkdir d", "echo a >d/f", "rmdir d",
			[]string{"+ d !" + conflictLost, "+ d/f"}, []string{"+ d/f !" + conflictAbove}},
		{"the directory above is a link", "mkdir d e", "echo a >d/f", "rmdir d; ln -s e d",
			[]string{"~ d !" + conflictLate, "+ d/f"}, []string{"+ d/f !" + conflictAbove}},
		{"a directory's mode", "mkdir d; chmod 755 d", "chmod 700 d", "chmod 711 d",
			[]string{"~ d !" + conflictLate}, []string{"~ d !" + conflictChanged}},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newTried(t, "set -e\n"+c.before)
			x.insideOnly("set -e\n" + c.script)
			x.outside(c.outside)
			if got := texts(x.changes()); !slices.Equal(got, c.during) {
				t.Errorf("changed while it ran, not frozen: %q, not %q", got, c.during)
			}
			x.freeze()
			if got := texts(x.changes()); !slices.Equal(got, c.during) {
				t.Errorf("changed while it ran: %q, not %q", got, c.during)
			}
			x = newTried(t, "set -e\n"+c.before)
			x.insideOnly("set -e\n" + c.script)
			x.freeze()
			x.outside(c.outside)
			if got := texts(x.changes()); !slices.Equal(got, c.after) {
				t.Errorf("changed afterwards: %q, not %q", got, c.after)
			}
		})
	}
}

// TestMovedIn: old versions of Linux mark each directory that is made as opaque. If the tree gets one meanwhile, all
// that is in it is a conflict, however old.
func TestMovedIn(t *testing.T) {
	x := newTried(t, "mkdir -p ../old/x; echo a >../old/x/f; echo b >../old/g")
	x.insideOnly("mkdir d; echo c >d/f")
	if err := unix.Setxattr(x.layer.TreeDir(0)+"/upper/d", overlayPrefix+"opaque", []byte("y"), 0); err != nil {
		t.Fatal(err)
	}
	x.outside("mv ../old d")
	want := []string{"+ d/f", "- d/g !" + conflictLate, "- d/x !" + conflictLate, "- d/x/f !" + conflictLate}
	if got := texts(x.changes()); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestBeginning: a change of a tree directly before a layer is made is none while the command runs, and one
// directly after it is.
func TestBeginning(t *testing.T) {
	x := newTried(t, "")
	name := filepath.Join(x.tree, "f")
	coarse := 0
	for i := range 200 {
		write := func() int64 {
			if err := os.WriteFile(name, fmt.Append(nil, i), 0o600); err != nil {
				t.Fatal(err)
			}
			dir, err := os.Open(x.tree)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			e, err := look(dir, "f")
			if err != nil || e == nil {
				t.Fatal(e, err)
			}
			return e.st.Ctim.Nano()
		}
		before := write()
		l := makeLayer(t, x.state, "", x.tree)
		began, err := l.began(0)
		if err != nil {
			t.Fatal(err)
		}
		after := write()
		if before > began || after < began {
			t.Fatalf("before %d, began %d, after %d", before, began, after)
		}
		if before == began {
			coarse++
		}
	}
	t.Logf("%d of 200 had the time of the beginning", coarse)
}

// TestPartlyApplied: what the tree has by now is no change any more.
func TestPartlyApplied(t *testing.T) {
	x := newTried(t, "echo a >f; echo b >g; mkdir d; echo c >d/h; chmod 755 d; chmod 644 f g d/h")
	x.insideOnly("echo x >f; touch -d 2001-01-01 f; rm g; chmod 700 d; mkdir n; chmod 700 n; echo y >n/i")
	x.freeze()
	all := texts(x.changes())
	if want := []string{"~ d", "~ f", "- g", "+ n", "+ n/i"}; !slices.Equal(all, want) {
		t.Fatalf("%q", all)
	}
	for _, step := range []struct{ do, gone string }{
		{"chmod 700 d", "~ d"},
		{"echo x >f; touch -d 2001-01-01 f", "~ f"},
		{"rm g", "- g"},
		{"mkdir n; chmod 700 n", "+ n"},
		{"cp -p " + x.layer.TreeDir(0) + "/upper/n/i n/i", "+ n/i"},
	} {
		x.outside(step.do)
		all = slices.DeleteFunc(all, func(s string) bool { return s == step.gone })
		if got := texts(x.changes()); strings.Join(got, "\n") != strings.Join(all, "\n") {
			t.Errorf("after %s: %q, not %q", step.do, got, all)
		}
	}
}

// TestClosedOutside: what can't be looked at any more is a conflict, and not "gone".
func TestClosedOutside(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can look at everything")
	}
	x := newTried(t, "mkdir -p d/e; echo a >d/f; echo a >g; mkdir o; echo a >o/f")
	x.insideOnly("echo b >d/f; echo b >d/h; rm -r d/e; echo b >g; rm -r o")
	x.freeze()
	x.outside("chmod 0 d o")
	const why = " !" + conflictClosed + "permission denied"
	want := []string{"- d/e" + why, "~ d/f" + why, "+ d/h" + why, "~ g", "- o !" + conflictChanged, "- o/f" + why}
	if got := texts(x.changes()); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	x.outside("chmod 700 d o")

	x = newTried(t, "mkdir -p d/e; echo a >d/f; echo a >g")
	x.insideOnly("echo b >d/f; echo b >g")
	x.outside("chmod 0 d")
	want = []string{"~ d !" + conflictLate + " ?what is in it is not looked at: permission denied", "~ g"}
	if got := texts(x.changes()); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	x.outside("chmod 700 d")
}

// TestFreezeTwice: only the first Freeze counts, also if several processes do it at once.
func TestFreezeTwice(t *testing.T) {
	x := newTried(t, "echo a >f")
	x.insideOnly("echo b >>f")
	if x.layer.Frozen() {
		t.Error("frozen before Freeze")
	}
	errs := make(chan error)
	for range 8 {
		go func() { errs <- x.layer.Freeze() }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	x.outside("echo c >f")
	x.freeze()
	if got := texts(x.changes()); !slices.Equal(got, []string{"~ f !" + conflictChanged}) || !x.layer.Frozen() {
		t.Errorf("%q", got)
	}
	files, err := filepath.Glob(x.layer.Dir + "/*")
	if want := 3; err != nil || len(files) != want {
		t.Errorf("%q, %v", files, err)
	}
}

// TestTwoTrees: a layer of several trees, one below another one's, lists each by its index; a second layer of a tree
// is in conflict with what the first one made real.
func TestTwoTrees(t *testing.T) {
	x := newTried(t, "mkdir sub; echo a >f; echo a >sub/f")
	first := x.layer
	x.insideOnly("echo b >f")
	both := makeLayer(t, x.state, "", x.tree, x.tree+"/sub")
	if err := os.WriteFile(both.TreeDir(1)+"/upper/g", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(both.TreeDir(0)+"/upper/g", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := both.Freeze(); err != nil {
		t.Fatal(err)
	}
	all, err := both.Changes()
	if err != nil || !slices.Equal(texts(all), []string{"+ g", "+ g"}) || all[0].Tree != 0 || all[1].Tree != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, files, err := both.Size(); files != 2 || err != nil {
		t.Errorf("%d files, %v", files, err)
	}

	x.layer = makeLayer(t, x.state, "", x.tree)
	x.insideOnly("echo c >f")
	x.outside("cp -p " + first.TreeDir(0) + "/upper/f f") // as apply does
	if got, err := first.Changes(); len(got) > 0 || err != nil {
		t.Errorf("the first: %q, %v", texts(got), err)
	}
	x.freeze()
	if got := texts(x.changes()); !slices.Equal(got, []string{"~ f !" + conflictLate}) {
		t.Errorf("the second: %q", got)
	}
}

// TestLinks: names of one file have its inode and number of names.
func TestLinks(t *testing.T) {
	x := newTried(t, "echo a >f; ln f g; echo b >h")
	x.insideOnly("echo c >n; ln n o; echo d >p; ln h i; echo e >>f")
	want := map[string]uint64{"f": 1, "h": 2, "i": 2, "n": 2, "o": 2, "p": 1}
	inodes := make(map[uint64]string)
	for _, c := range x.changes() {
		if c.Links != want[c.Path] {
			t.Errorf("%s has %d names", c.Path, c.Links)
		}
		inodes[c.Inode] += c.Path
		if c.Path == "f" && c.Was.Links != 2 {
			t.Errorf("f had %d names", c.Was.Links)
		}
	}
	names := slices.Sorted(maps.Values(inodes))
	if !slices.Equal(names, []string{"f", "hi", "no", "p"}) {
		t.Errorf("files: %q", names)
	}
}
