package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestRead reads regular files that are not too long, and nothing else.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 10_000)
	if err := errors.Join(
		os.WriteFile(dir+"/long", []byte(long), 0o600),
		os.WriteFile(dir+"/empty", nil, 0o600),
		os.Symlink("long", dir+"/link"),
		syscall.Mkfifo(dir+"/fifo", 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		limit int64
		want  string
		err   string
	}{
		{"long", 10_000, long, ""},
		{"long", 9_999, "", "it has 10000 bytes: the most is 9999"},
		{"long", 0, "", "it has 10000 bytes: the most is 0"},
		{"link", 10_000, long, ""},
		{"empty", 0, "", ""},
		{"fifo", 10, "", "it is not a regular file"},
		{".", 10, "", "it is not a regular file"},
		{"nothing", 10, "", "no such file"},
	} {
		got, err := Read(filepath.Join(dir, c.name), c.limit)
		if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s, at most %d bytes: %d bytes, %v", c.name, c.limit, len(got), err)
		}
		if pe := (*fs.PathError)(nil); err != nil && !errors.As(err, &pe) {
			t.Errorf("%s: %T is no *fs.PathError", c.name, err)
		}
	}
	if _, err := Read(os.DevNull, 10); err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
		t.Errorf("%s: %v", os.DevNull, err)
	}
}

// TestList lists what is there, but no more than n entries.
func TestList(t *testing.T) {
	dir := t.TempDir()
	if got, err := List(dir, 10); err != nil || len(got) != 0 {
		t.Errorf("an empty directory: %v, %v", got, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := os.Mkdir(dir+"/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range map[int]int{2: 2, 3: 3, 10: 3} {
		if got, err := List(dir, n); err != nil || len(got) != want {
			t.Errorf("at most %d: %v, %v", n, got, err)
		}
	}
	if _, err := List(dir+"/nothing", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestListKinds compares List with the standard library, in a directory that takes several buffers.
func TestListKinds(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		name := fmt.Sprintf("%s/%0*d", dir, 1+i%90, i)
		if err := errors.Join(os.Mkdir(name+"d", 0o700), os.Symlink("x", name+"l"), syscall.Mkfifo(name+"p", 0o600), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := List(dir, -1)
	want, werr := os.ReadDir(dir)
	if err != nil || werr != nil || len(got) != len(want) {
		t.Fatal(len(got), err, len(want), werr)
	}
	slices.SortFunc(got, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for i, e := range got {
		info, err := e.Info()
		if w := want[i]; e.Name() != w.Name() || e.Type() != w.Type() || e.IsDir() != w.IsDir() || err != nil || info.Mode().Type() != w.Type() {
			t.Errorf("%s, %v, %v: want %v", e.Name(), e.Type(), err, w)
		}
	}
}

// TestCountsDirs: where the links of a directory are said to count the directories in it, they do.
func TestCountsDirs(t *testing.T) {
	dir := t.TempDir()
	if !CountsDirs(dir) {
		t.Skipf("the file system of %s does not count directories", dir)
	}
	links := func() uint64 {
		st, err := Lstat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return st.Nlink
	}
	if err := errors.Join(os.WriteFile(dir+"/file", nil, 0o600), os.Symlink(".", dir+"/link")); err != nil || links() != 2 {
		t.Errorf("%v, %d links without a directory", err, links())
	}
	if err := errors.Join(os.Mkdir(dir+"/a", 0o700), os.Mkdir(dir+"/b", 0o700)); err != nil || links() != 4 {
		t.Errorf("%v, %d links with two", err, links())
	}
	if err := os.Rename(dir+"/a", dir+"/b/a"); err != nil || links() != 3 {
		t.Errorf("%v, %d links with one", err, links())
	}
	if CountsDirs("/proc") || CountsDirs(dir+"/nothing") {
		t.Error("unknown file systems count directories")
	}
}

// TestLstat compares Lstat with the standard library's.
func TestLstat(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Symlink("x", dir+"/link"), syscall.Mkfifo(dir+"/fifo", 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, dir + "/link", dir + "/fifo", os.DevNull, os.Args[0]} {
		got, err := Lstat(name)
		want, werr := os.Lstat(name)
		if err != nil || werr != nil {
			t.Fatal(err, werr)
		}
		st := want.Sys().(*syscall.Stat_t)
		if kinds := fs.ModeType | fs.ModePerm; got.Mode != want.Mode()&kinds || got.ID != (ID{uint64(st.Dev), st.Ino}) || got.Nlink != uint64(st.Nlink) {
			t.Errorf("%s: %+v, not %v", name, got, want)
		}
	}
	if _, err := Lstat(dir + "/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestMayHave: what is looked for is found anywhere, also across the end of a piece, within the
// bound of what is read.
func TestMayHave(t *testing.T) {
	const want, size, piece = "want", 40 << 10, 16 << 10
	name := filepath.Join(t.TempDir(), "file")
	found := func(b []byte) bool { return bytes.Contains(b, []byte(want)) }
	for at := range size {
		if near := at % piece; near > 16 && near < piece-16 && at != size-len(want) {
			continue
		}
		text := append(append(make([]byte, at), want...), make([]byte, size)...)[:size]
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		left := size
		if got := MayHave(name, &left, len(want)-1, found); got != (at <= size-len(want)) {
			t.Errorf("at %d: %v", at, got)
		}
	}
	none := func([]byte) bool { return false }
	for left, want := range map[int]bool{size: false, size - 1: true, -1: true} {
		if got := MayHave(name, &left, 0, none); got != want {
			t.Errorf("with %d bytes left: %v", left, got)
		}
	}
	left := size
	if !MayHave(name+".none", &left, 0, none) || !MayHave(filepath.Dir(name), &left, 0, none) {
		t.Error("what can't be read has nothing")
	}
}
