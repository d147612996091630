package protect

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
)

// index returns an index of version 2 as git writes it. Names that end in "/" are gitlinks.
func index(names ...string) []byte {
	b := append([]byte("DIRC"), 0, 0, 0, 2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(names)))
	for _, n := range names {
		mode := uint32(0o100644)
		if strings.HasSuffix(n, "/") {
			mode = 0o160000
		}
		n = strings.TrimSuffix(n, "/")
		e := make([]byte, 62, 128)
		binary.BigEndian.PutUint32(e[24:], mode)
		e = append(e, n...)
		b = append(append(b, e...), make([]byte, 8-len(e)%8)...)
	}
	return append(b, make([]byte, 20)...)
}

func TestParseIndex(t *testing.T) {
	left := 1 << 30
	b := index("a", "sub/", "twelve bytes", "dir/sub2/")
	links, shared, ok := parseIndex(b, 20, false, &left)
	if want := []string{"sub", "dir/sub2"}; !ok || !slices.Equal(links, want) || shared != "" {
		t.Errorf("%q, %q, %t", links, shared, ok)
	}
	if all, _, _ := parseIndex(b, 20, true, &left); len(all) != 4 {
		t.Errorf("all: %q", all)
	}
	if links, _, _ := parseIndex(index("/"), 20, false, &left); !slices.Contains(links, "") {
		t.Error("a gitlink without a name is not seen")
	}
	for n := range b { // a truncated or damaged index must not cause a panic
		parseIndex(b[:n], 20, false, &left)
		for _, v := range []byte{0, 4, 0x80, 0xff} {
			c := slices.Clone(b)
			c[n] = v
			parseIndex(c, 20, true, &left)
			parseIndex(c, 32, false, &left)
		}
	}
}

// again returns an index of version 4 that repeats one gitlink, in 64 bytes each.
func again(name string, times int) []byte {
	b := append([]byte("DIRC"), 0, 0, 0, 4)
	b = binary.BigEndian.AppendUint32(b, uint32(times))
	for range times {
		e := make([]byte, 63)
		binary.BigEndian.PutUint32(e[24:], 0o160000)
		b, name = append(append(append(b, e...), name...), 0), "" // the first has the name, the others repeat it
	}
	return append(b, make([]byte, 20)...)
}

// TestIndexAgain: gitlinks with long names, which take few bytes of an index each, are read and
// looked for only up to the limit. Then the index is reported. The control: with a higher limit
// all are, and nothing is reported.
func TestIndexAgain(t *testing.T) {
	const times = 500
	long := strings.Repeat("a", 100_000)
	for left, want := range map[int]int{1 << 20: 10, 1 << 30: times} {
		links, _, ok := parseIndex(again(long, times), 20, false, &left)
		if len(links) != want || ok != (want == times) || want == times && links[times-1] != long {
			t.Errorf("%d gitlinks, %t, want %d", len(links), ok, want)
		}
	}
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	deep := strings.Repeat("a/", 200)
	if err := errors.Join(os.MkdirAll(filepath.Join(tree, deep), 0o755), os.WriteFile(tree+"/index", again(deep, times), 0o644)); err != nil {
		t.Fatal(err)
	}
	for left, want := range map[int]int{1 << 20: 1, maxIndexes: 0} {
		s := (&Audit{}).Snapshot(&h, nil)
		s.left = left
		if told := s.newGitlinks(tree+"/index", tree); len(told) != want {
			t.Errorf("with %d bytes left it reported %v", left, told)
		}
	}
}

func BenchmarkParseIndex(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = "some/directory/of/a/project/file.go"
	}
	text, left := index(names...), maxIndexes
	for b.Loop() {
		parseIndex(text, 20, false, &left)
	}
}

// TestMayLink: an index with a shared index or a gitlink is read whole. One in which only files
// have such names is not.
func TestMayLink(t *testing.T) {
	for text, want := range map[string]bool{
		"policy/links.go\x00symlink.h": false,
		"link":                         false, // at the end of a piece; the next one begins with it
		"a link, link\x00\x00\x00\x14": true,
		"x\x00\x00\xe0\x00y":           true,
		"\xe0\xe0\x00\xe0\x00":         false,
	} {
		if got := mayLink([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
