package review

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
)

// made makes a layer over trees that are there, without a mount.
func made(t testing.TB, trees int) (l *layer.Layer, upper, lower []string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l = &layer.Layer{Dir: filepath.Join(top, "layer")}
	for i := range trees {
		l.Trees = append(l.Trees, layer.Tree{Path: fmt.Sprintf("%s/tree%d", top, i)})
		lower = append(lower, l.Trees[i].Path)
		upper = append(upper, l.TreeDir(i)+"/upper")
		for _, dir := range []string{lower[i], upper[i]} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(lower[i], &st); err != nil {
			t.Fatal(err)
		}
		l.Trees[i].Ino = st.Ino
	}
	return l, upper, lower
}

// nowhere is a host on which no file exists.
func nowhere() *host.Host {
	return &host.Host{Lstat: func(string) (host.Stat, error) { return host.Stat{}, fs.ErrNotExist }}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFiles: the files of a layer and a tree are read, and no link is followed, nor a FIFO waited for.
func TestFiles(t *testing.T) {
	l, upper, lower := made(t, 1)
	write(t, upper[0]+"/a", "new\n")
	write(t, lower[0]+"/a", "old\n")
	write(t, lower[0]+"/../secret", "secret\n")
	must(t,
		os.Symlink("../secret", lower[0]+"/b"), os.Symlink("..", lower[0]+"/dir"),
		syscall.Mkfifo(lower[0]+"/fifo", 0o644), os.Symlink("../../../secret", upper[0]+"/b"),
	)
	changes := []layer.Change{
		changedFile("a", 0o644, 0o644), changedFile("b", 0o644, 0o644), changedFile("dir/secret", 0o644, 0o644),
		changedFile("fifo", 0o644, 0o644),
	}
	r, err := Of(l, changes, nowhere())
	must(t, err)
	defer r.Close()
	var b strings.Builder
	must(t, r.Diff(&b))
	if strings.Contains(b.String(), "secret\n") || !strings.Contains(b.String(), "-old\n+new\n") {
		t.Errorf("%s", b.String())
	}
	if n := strings.Count(b.String(), "can't be read"); n != 3 {
		t.Errorf("%d can't be read:\n%s", n, b.String())
	}
	if to, err := r.files.Link(0, "b", true); to != "../secret" || err != nil {
		t.Error(to, err)
	}
	for rel, want := range map[string]fs.FileMode{"a": 0, "dir": fs.ModeSymlink, "fifo": fs.ModeNamedPipe} {
		if got, err := r.files.Type(0, rel); got != want || err != nil {
			t.Errorf("%s: %v, %v", rel, got, err)
		}
	}
	for _, rel := range []string{"dir/secret", "../secret", "a/x", "none"} {
		if _, err := r.files.Type(0, rel); !host.Missing(err) {
			t.Errorf("%s: %v", rel, err)
		}
	}

	must(t, os.Symlink("a", lower[0]+"/sub.link"), os.Mkdir(lower[0]+"/sub", 0o755), os.Symlink("..", lower[0]+"/sub/up"))
	got, whole := r.files.Find(0)
	if !whole || !slices.Equal(slices.Sorted(slices.Values(got.Links)), []string{"b", "dir", "sub.link", "sub/up"}) {
		t.Errorf("the links are %q, all: %v", got, whole)
	}
	root, err := os.Open(lower[0])
	must(t, err)
	defer root.Close()
	if got, whole := find(root, 3); whole {
		t.Errorf("%q of a tree with more entries are all", got)
	}

	must(t, os.RemoveAll(lower[0]))
	r, err = Of(l, changes[:1], nowhere())
	must(t, err)
	defer r.Close()
	if text := r.Summary(); !strings.Contains(text, "~ a  can't be read: file does not exist") {
		t.Errorf("the tree has gone: %s", text)
	}
}

// TestTar: an archive has all that is in a layer, with what is removed.
func TestTar(t *testing.T) {
	l, upper, lower := made(t, 1)
	const odd = "o\xffd\n\u202e" + "d"
	write(t, upper[0]+"/d/file", "text")
	write(t, upper[0]+"/"+odd, "odd")
	write(t, upper[0]+"/.wh.x", "")
	write(t, upper[0]+"/was-dir", "")
	at := time.Unix(1e9, 123e6)
	must(t,
		os.Link(upper[0]+"/d/file", upper[0]+"/d/second"), os.Symlink("a\xffb", upper[0]+"/link"),
		syscall.Mkfifo(upper[0]+"/fifo", 0o640), os.Chmod(upper[0]+"/fifo", 0o640),
		os.Chmod(upper[0]+"/d/file", 0o751), os.Chtimes(upper[0]+"/d/file", at, at),
	)
	attr := unix.Setxattr(upper[0]+"/"+odd, "user.note", []byte("n\x00"), 0) == nil
	_ = unix.Setxattr(upper[0]+"/"+odd, "user.overlay.origin", []byte("o"), 0)
	refused := added("node", fs.ModeDevice, 0)
	refused.Refused = "a device"
	changes := []layer.Change{
		added(".wh.x", 0o644, 0), added("d", dirMode, 0), added("d/file", 0o751, 4), added("d/second", 0o751, 4),
		added("fifo", fs.ModeNamedPipe|0o640, 0), removed("gone", dirMode), removed("gone/in", 0o644),
		added("link", linkMode, 0), refused, added(odd, 0o644, 3), removed("sub/old", 0o644),
		changedFile("was-dir", 0o644, dirMode), removed("was-dir/in", 0o644),
	}
	must(t, os.RemoveAll(lower[0]))
	var b bytes.Buffer
	left, err := Tar(&b, l, changes)
	if err != nil || !slices.Equal(left, []string{".wh.x", "node"}) {
		t.Fatal(left, err)
	}
	var got []string
	in := tar.NewReader(&b)
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		text, err := io.ReadAll(in)
		must(t, err)
		got = append(got, fmt.Sprintf("%c %o %q %q %s", h.Typeflag, h.Mode, h.Name, h.Linkname, text))
		if h.Name == "d/file" && !h.ModTime.Equal(at) {
			t.Errorf("time %s", h.ModTime)
		}
		if h.Name == odd && attr && (h.PAXRecords["SCHILY.xattr.user.note"] != "n\x00" || len(h.PAXRecords) != 3) {
			t.Errorf("records %q", h.PAXRecords)
		}
	}
	want := []string{
		`5 755 "d/" "" `, `0 751 "d/file" "" text`, `1 751 "d/second" "d/file" `, `6 640 "fifo" "" `,
		`0 644 ".wh.gone" "" `, `2 777 "link" "a\xffb" `, fmt.Sprintf(`0 644 %q "" odd`, odd), `0 644 "sub/.wh.old" "" `,
		`0 644 "was-dir" "" `,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTarTrees: the trees of one layer have their paths in an archive.
func TestTarTrees(t *testing.T) {
	l, upper, lower := made(t, 2)
	write(t, upper[1]+"/a", "")
	a := added("a", 0o644, 0)
	a.Tree = 1
	gone := removed("b", 0o644)
	var b bytes.Buffer
	_, err := Tar(&b, l, []layer.Change{gone, a})
	must(t, err)
	in := tar.NewReader(&b)
	for _, want := range []string{lower[0] + "/.wh.b", lower[1] + "/a"} {
		if h, err := in.Next(); err != nil || "/"+h.Name != want {
			t.Errorf("%v, %v, not %s", h, err, want)
		}
	}
}

// BenchmarkShow reviews 10,000 changes: a tenth of them changed files.
func BenchmarkShow(b *testing.B) {
	l, upper, lower := made(b, 1)
	var changes []layer.Change
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %d of a file with some text in it\n", i)
	}
	for i := range 100 {
		dir := fmt.Sprintf("node_modules/p%02d", i)
		changes = append(changes, added(dir, dirMode, 0))
		for j := range 100 {
			name := fmt.Sprintf("%s/f%02d.js", dir, j)
			write(b, upper[0]+"/"+name, text.String()+"more\n")
			if j%10 != 0 {
				changes = append(changes, added(name, 0o644, 4000))
				continue
			}
			changes = append(changes, changedFile(name, 0o644, 0o644))
			write(b, lower[0]+"/"+name, text.String())
		}
	}
	for _, c := range []struct {
		name string
		show func(*Review) error
	}{
		{"diff", func(r *Review) error { return r.Diff(io.Discard) }},
		{"list", func(r *Review) error { return noText(r.List()) }},
		{"summary", func(r *Review) error { return noText(r.Summary()) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				r, err := Of(l, changes, nowhere())
				must(b, err, c.show(r))
				r.Close()
			}
		})
	}
}

func noText(text string) error {
	if text == "" {
		return errors.New("nothing is shown")
	}
	return nil
}

func BenchmarkNew(b *testing.B) {
	changes, m := npm()
	for b.Loop() {
		reviewed(m, changes, "/t")
	}
}
