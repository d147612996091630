package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// python is a script of sh that runs one of Python.
func python(t testing.TB, script string) string {
	t.Helper()
	const name = "/usr/bin/python3"
	if _, err := os.Stat(name); err != nil {
		t.Skip("python3 is missing")
	}
	return name + " - <<'END'\nimport os, socket\n" + script + "\nEND"
}

// TestForgedAttributes: a command can't make the kernel's marks. What it sets by their names is refused, and
// its other attributes count.
func TestForgedAttributes(t *testing.T) {
	x := newTried(t, "mkdir d; echo a >d/f; mkdir e; echo a >g; echo a >h; : >i")
	x.insideOnly(python(t, `
for name in 'opaque', 'redirect', 'metacopy', 'whiteout', 'overlay.opaque':
    for path in 'd', 'g':
        try:
            os.setxattr(path, 'user.overlay.' + name, b'y')
        except OSError:
            pass # Linux before 6.7
os.setxattr('e', 'user.zsbx', b'\xff')
os.setxattr('h', 'user.zsbx', b'1')
os.setxattr('i', 'user.zsbx', b'1')
os.removexattr('i', 'user.zsbx')
try:
    os.mknod('w', 0o20600, 0)
except OSError:
    pass
else:
    raise SystemExit('made a whiteout')
`))
	got := texts(x.changes())
	escaped := func(name string) string {
		return "~ " + name + " ?it has the attribute user.overlay.overlay."
	}
	got = slices.DeleteFunc(got, func(s string) bool {
		return strings.HasPrefix(s, escaped("d")) || strings.HasPrefix(s, escaped("g"))
	})
	if want := []string{"~ e", "~ h"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	x.freeze()
	x.outside("echo b >d/f")
	for _, s := range texts(x.changes()) {
		if strings.Contains(s, "d/f") {
			t.Error("what is in a directory that the command marked: ", s)
		}
	}
}

// TestMarksByHand: marks that the kernel makes only in lower directories, or with other options, are refused.
func TestMarksByHand(t *testing.T) {
	x := newTried(t, "mkdir d; echo a >d/f; echo a >g; echo a >h")
	x.insideOnly("chmod 700 d; echo b >g; echo b >h; : >i")
	upper := x.layer.TreeDir(0) + "/upper/"
	for name, value := range map[string]string{"d:opaque": "x", "g:redirect": "/etc", "h:metacopy": "", "i:whiteout": "y"} {
		file, attr, _ := strings.Cut(name, ":")
		if err := unix.Setxattr(upper+file, overlayPrefix+attr, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	const why = " ?it has the attribute user.overlay."
	const which = ", which belongs to overlays"
	want := []string{
		"~ d" + why + "opaque" + which, "~ g" + why + "redirect" + which,
		"~ h" + why + "metacopy" + which, "+ i" + why + "whiteout" + which,
	}
	if got := texts(x.changes()); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestKinds: sockets and devices are refused.
func TestKinds(t *testing.T) {
	x := newTried(t, "echo a >f")
	x.insideOnly(python(t, "socket.socket(socket.AF_UNIX).bind('s')"))
	upper := x.layer.TreeDir(0) + "/upper/"
	const socket = "+ s ?a socket, and the program that made it has ended"
	want := []string{socket}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(upper+"null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(upper+"disk", unix.S_IFBLK|0o600, 0); err != nil {
			t.Fatal(err)
		}
		want = []string{"+ disk ?a device", "+ null ?a device", socket}
	}
	got := x.changes()
	if !slices.Equal(texts(got), want) {
		t.Errorf("%q, not %q", texts(got), want)
	}
	if c := got[len(got)-1]; c.Type&fs.ModeSocket == 0 {
		t.Errorf("a socket has type %v", c.Type)
	}
}

// TestClosed: what a command closed to its own user is refused, counted as far as it can be, and removed.
func TestClosed(t *testing.T) {
	x := newTried(t, "mkdir old; echo a >old/f; echo a >g")
	x.insideOnly("mkdir -p d/e; echo b >d/e/f; chmod 0 d/e/f d/e d; chmod 300 old; chmod 0 g; mkdir n; echo c >n/h; chmod 500 n")
	want := []string{"+ d", "+ d/e", "+ d/e/f", "~ g", "+ n", "+ n/h", "~ old"}
	if os.Geteuid() != 0 {
		closed := func(mode string) string {
			return " ?its mode " + mode + " closes it to its owner, so that it can't be read"
		}
		want = []string{"+ d" + closed("0000"), "~ g" + closed("0000"), "+ n", "+ n/h", "~ old" + closed("0300")}
	}
	x.freeze()
	if got := texts(x.changes()); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if _, files, err := x.layer.Size(); err != nil || files < 2 {
		t.Errorf("%d files, %v", files, err)
	}
	if err := x.layer.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(x.state + "/try"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestDeep: a path may be longer than the kernel takes one. What is too deep is refused, and removed all the same.
func TestDeep(t *testing.T) {
	deep := func(levels int) string {
		return python(t, fmt.Sprintf("for i in range(%d):\n    os.mkdir('d' * 255)\n    os.chdir('d' * 255)\n"+
			"open('f', 'w').close()", levels))
	}
	x := newTried(t, "")
	x.insideOnly(deep(100))
	x.freeze()
	got := x.changes()
	if len(got) != 101 || !strings.HasSuffix(got[100].Path, "d/f") || len(got[100].Path) != 100*256+1 {
		t.Errorf("%d changes", len(got))
	}

	x = newTried(t, "echo a >g")
	x.insideOnly(deep(2000) + "\necho b >g")
	x.freeze()
	got = x.changes()
	if len(got) != maxDepth+2 || !strings.Contains(text(&got[maxDepth]), "?what is in it is not looked at: more than 256 directories") {
		t.Errorf("%d changes", len(got))
	}
	if text(&got[len(got)-1]) != "~ g" {
		t.Error(text(&got[len(got)-1]))
	}
	if _, files, err := x.layer.Size(); files != 1 || err != nil {
		t.Errorf("%d files, %v", files, err)
	}
	if err := x.layer.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(x.state + "/try"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	x = newTried(t, deep(100))
	x.insideOnly("rm -r d*")
	x.freeze()
	got = x.changes()
	if len(got) != 101 || got[100].Op != Remove {
		t.Errorf("%d changes", len(got))
	}
}

// TestGone: a layer of which the tree, or what it wrote, has gone can still be looked at.
func TestGone(t *testing.T) {
	const script = "echo b >>f; rm g; mkdir d; echo c >d/h"
	goneTree := []string{"+ d !" + conflictGone, "+ d/h !" + conflictGone, "+ f !" + conflictGone, "- g !" + conflictGone}
	frozen := slices.Clone(goneTree)
	frozen[2] = "~ f !" + conflictGone
	for name, do := range map[string]string{
		"removed":  "rm -r ../tree",
		"replaced": "mkdir ../t; echo a >../t/f; mv ../tree ../o; mv ../t ../tree",
		"a link":   "mv ../tree ../o; ln -s o ../tree",

		// ext4 soon gives another directory the number of one that was removed.
		"the same number": `n=$(stat -c %i .); cd ..; rm -r tree
			for i in $(seq 50); do mkdir $i; [ $(stat -c %i $i) = $n ] && break; done; mv $i tree`,
	} {
		t.Run(name, func(t *testing.T) {
			x := newTried(t, "echo a >f; echo a >g")
			x.insideOnly(script)
			x.outside(do)
			if got := texts(x.changes()); !slices.Equal(got, goneTree) {
				t.Errorf("%q, not %q", got, goneTree)
			}
			x = newTried(t, "echo a >f; echo a >g")
			x.insideOnly(script)
			x.freeze()
			x.outside(do)
			if got := texts(x.changes()); !slices.Equal(got, frozen) {
				t.Errorf("frozen before: %q, not %q", got, frozen)
			}
		})
	}
	t.Run("back", func(t *testing.T) {
		x := newTried(t, "echo a >f; echo a >g")
		x.insideOnly(script)
		x.outside("mv ../tree ../o")
		x.freeze()
		if err := os.Rename(filepath.Dir(x.tree)+"/o", x.tree); err != nil {
			t.Fatal(err)
		}
		for _, s := range texts(x.changes()) {
			if !strings.HasSuffix(s, "!"+conflictWasGone) {
				t.Errorf("%q", s)
			}
		}
	})
	t.Run("upper", func(t *testing.T) {
		x := newTried(t, "echo a >f; echo a >g")
		x.insideOnly(script)
		x.freeze()
		if err := os.RemoveAll(x.layer.TreeDir(0) + "/upper"); err != nil {
			t.Fatal(err)
		}
		want := []string{"+ d", "+ d/h", "~ f", "- g"}
		if got := texts(x.changes()); !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
		if err := os.Remove(filepath.Join(x.layer.Dir, seenFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := x.layer.Changes(); err == nil {
			t.Error("without what was noted there is no error")
		}
	})
}

// TestManyChanges: all of many changes are read.
func TestManyChanges(t *testing.T) { manyChanges(t, 5, nil) }

// BenchmarkManyChanges reads 10,000 changes, which is to take less than a second, and fails if the best round of
// them takes more: -benchtime 3x is enough.
func BenchmarkManyChanges(b *testing.B) {
	best := make(map[string]time.Duration)
	for range b.N {
		manyChanges(b, 50, best)
	}
	for name, took := range best {
		b.ReportMetric(took.Seconds(), "s-"+name)
		if took > time.Second {
			b.Errorf("%s takes %v", name, took)
		}
	}
}

// manyChanges has a command remove, change and add some directories with files, and reads that in all ways. It notes
// the least time that each took.
func manyChanges(t testing.TB, dirs int, best map[string]time.Duration) {
	const make = `
for i in range(%[1]d):
    os.mkdir(f'%[2]s{i}')
    for k in range(100):
        open(f'%[2]s{i}/{k}', 'w').write('a' * 2000)
`
	x := newTried(t, python(t, fmt.Sprintf(make, dirs, "old")))
	x.insideOnly("rm -r old[1-9]*; echo b >old0/1\n" + python(t, fmt.Sprintf(make, dirs, "new")))
	want := (dirs-1)*101 + 1 + dirs*101
	files := dirs*100 + 1
	for _, c := range []struct {
		name string
		want int
		do   func() (int, error)
	}{
		{"Changes", want, func() (int, error) { all, err := x.layer.Changes(); return len(all), err }},
		{"Freeze", 0, func() (int, error) { return 0, x.layer.Freeze() }},
		{"frozen-Changes", want, func() (int, error) { all, err := x.layer.Changes(); return len(all), err }},
		{"Size", files, func() (int, error) { _, n, err := x.layer.Size(); return n, err }},
	} {
		began := time.Now()
		n, err := c.do()
		took := time.Since(began)
		if n != c.want || err != nil {
			t.Errorf("%s: %d, not %d, %v", c.name, n, c.want, err)
		}
		if least, is := best[c.name]; best != nil && (!is || took < least) {
			best[c.name] = took
		}
	}
}

// TestTooMany: more changes than the bound are an error, wherever they are.
func TestTooMany(t *testing.T) {
	for name, acts := range map[string][2]string{
		"in a directory":   {"", "for i in 1 2 3 4 5 6; do : >$i; done"},
		"in directories":   {"", "for i in 1 2 3; do mkdir $i; : >$i/f; done"},
		"removed":          {"mkdir d; for i in 1 2 3 4 5; do : >d/$i; done", "rm -r d"},
		"in an opaque one": {"mkdir d; for i in 1 2 3 4 5; do : >d/$i; done", "rm -r d; mkdir d; : >d/6"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTried(t, acts[0])
			x.insideOnly(acts[1])
			for most, want := range map[int]error{5: errTooMany, 6: nil} {
				r := &reader{layer: x.layer, uid: os.Geteuid(), gids: []int{os.Getegid()}, most: most}
				if err := r.trees(); !errors.Is(err, want) {
					t.Errorf("at most %d: %v", most, err)
				}
			}
			r := &reader{layer: x.layer, uid: os.Geteuid(), gids: []int{os.Getegid()}, most: 10, names: maxNames}
			if err := r.trees(); !errors.Is(err, errTooMany) {
				t.Errorf("too long paths: %v", err)
			}
		})
	}
}
