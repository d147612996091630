package deny

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
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
	machine, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	d := newDenials(Request{Host: &machine, Deny: []resolve.DenyPath{{Pattern: top + "/**/.env", Glob: true}}})
	hits, err := d.find(alias{top, top}, d.deny)
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

// TestWalkLookUps: what is denied is found by look-ups in directories without others in them, and
// by reading where that could miss something.
func TestWalkLookUps(t *testing.T) {
	all := []string{"/t/a/.env", "/t/a/x", "/t/b/c/.env", "/t/b/.env", "/t/d/y", "/t/e/.env@"}
	for _, c := range []struct {
		why     string
		pattern string
		change  func(*host.Host)
		read    []string
	}{
		{"directories are counted", "/t/**/.env", func(h *host.Host) {}, []string{"/t", "/t/b"}},
		{"a wildcard could match any name", "/t/**/.en?", func(h *host.Host) {}, []string{"/t", "/t/a", "/t/b", "/t/b/c", "/t/d", "/t/e"}},
		{"directories are not counted", "/t/**/.env", func(h *host.Host) {
			h.CountsDirs = func(string) bool { return false }
		}, []string{"/t", "/t/a", "/t/b", "/t/b/c", "/t/d", "/t/e"}},
		{"the number of links means nothing", "/t/**/.env", func(h *host.Host) {
			plain := h.Lstat
			h.Lstat = func(p string) (host.Stat, error) {
				st, err := plain(p)
				st.Nlink = 1
				return st, err
			}
		}, []string{"/t", "/t/a", "/t/b", "/t/b/c", "/t/d", "/t/e"}},
		{"a name can't be looked up", "/t/**/.env", func(h *host.Host) {
			plain := h.Lstat
			h.Lstat = func(p string) (host.Stat, error) {
				if p == "/t/a/.env" {
					return host.Stat{}, syscall.EACCES
				}
				return plain(p)
			}
		}, []string{"/t", "/t/a", "/t/b"}},
	} {
		machine := fakeHost(all...)
		var read []string
		list := machine.ReadDir
		machine.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
			read = append(read, p)
			return list(p, n)
		}
		machine.CountsDirs = func(string) bool { return true }
		c.change(machine)
		d := newDenials(Request{Host: machine, Deny: []resolve.DenyPath{wild(c.pattern)}})
		hits, err := d.find(alias{"/t", "/t"}, d.deny)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range hits {
			got = append(got, fmt.Sprintf("%s %v %v", h.Path, h.dir, h.link))
		}
		if want := []string{"/t/a/.env false false", "/t/b/.env false false", "/t/b/c/.env false false", "/t/e/.env false true"}; !slices.Equal(got, want) {
			t.Errorf("%s: found %q", c.why, got)
		}
		slices.Sort(read)
		if !slices.Equal(read, c.read) {
			t.Errorf("%s: read %q", c.why, read)
		}
	}
}
