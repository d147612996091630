package deny

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/policy"
)

// TestWalkBig: in a tree with many directories two goroutines find what one finds, in order.
func TestWalkBig(t *testing.T) {
	top := t.TempDir()
	var want []string
	for i := range 300 {
		dir := filepath.Join(top, fmt.Sprint(i%10), fmt.Sprint(i))
		file := filepath.Join(dir, ".env")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			want = append(want, file)
		} else {
			file += "rc"
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	host, err := policy.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	d := newDenials(Request{Host: &host, Deny: []policy.DenyPath{{Pattern: top + "/**/.env", Glob: true}}})
	hits, err := d.find(place{top, top}, d.deny)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hits {
		got = append(got, h.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d found, want %d: %q", len(got), len(want), got)
	}
	if d.visited != 10+300+300 {
		t.Errorf("%d entries seen", d.visited)
	}
}
