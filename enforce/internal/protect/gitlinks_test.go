package protect

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// index is an index of version 2 as git writes it; names that end in "/" are gitlinks.
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
	b := index("a", "sub/", "twelve bytes", "dir/sub2/")
	links, shared, ok := parseIndex(b, 20, false)
	if want := []string{"sub", "dir/sub2"}; !ok || !slices.Equal(links, want) || shared != "" {
		t.Errorf("%q, %q, %t", links, shared, ok)
	}
	if all, _, _ := parseIndex(b, 20, true); len(all) != 4 {
		t.Errorf("all: %q", all)
	}
	if links, _, _ := parseIndex(index("/"), 20, false); !slices.Contains(links, "") {
		t.Error("a gitlink without a name is not seen")
	}
	for n := range b { // what is cut off or changed is no reason to fail
		parseIndex(b[:n], 20, false)
		for _, v := range []byte{0, 4, 0x80, 0xff} {
			c := slices.Clone(b)
			c[n] = v
			parseIndex(c, 20, true)
			parseIndex(c, 32, false)
		}
	}
}

func BenchmarkParseIndex(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = "some/directory/of/a/project/file.go"
	}
	text := index(names...)
	for b.Loop() {
		parseIndex(text, 20, false)
	}
}
