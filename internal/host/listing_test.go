package host_test

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
)

// TestListingLacks: a name is not said to be missing if a file system may find it by another
// spelling, if it is beyond the bound, or if the directory can't be read.
func TestListingLacks(t *testing.T) {
	var many []string
	for i := range host.MaxListed + 1 {
		many = append(many, strconv.Itoa(i))
	}
	for _, tt := range []struct {
		name    string
		entries []string
		asked   string
		want    bool
	}{
		{"there", []string{".envrc"}, ".envrc", false},
		{"below it", []string{".vscode"}, ".vscode/tasks.json", false},
		{"not there", []string{"a", ".envrc2"}, ".envrc", true},
		{"below what is not there", []string{"a"}, ".vscode/tasks.json", true},
		{"empty", nil, ".envrc", true},
		{"other case there", []string{".ENVRC"}, ".envrc", false},
		{"other case asked", []string{"head"}, "HEAD", false},
		{"a letter that folds to k", []string{".\u212Ailo"}, ".kilo", false}, // the Kelvin sign
		{"any letter beyond ASCII", []string{"é"}, ".kilo", false},
		{"too many", many, ".envrc", false},
		{"not readable", nil, ".envrc", false},
	} {
		h := &host.Host{ReadDir: func(string, int) ([]fs.DirEntry, error) {
			if tt.name == "not readable" {
				return nil, fs.ErrPermission
			}
			files := fstest.MapFS{}
			for _, e := range tt.entries {
				files["d/"+e] = &fstest.MapFile{}
			}
			if len(files) == 0 {
				return nil, nil
			}
			return files.ReadDir("d")
		}}
		if got := host.List(h, "/d").Lacks(tt.asked); got != tt.want {
			t.Errorf("%s: lacks is %v", tt.name, got)
		}
	}
}

// TestListAll: of a big directory the first entries are looked at, and all of them are there for
// patterns.
func TestListAll(t *testing.T) {
	h := hosttest.Disk(t)
	const size = 2 * host.MaxListed
	for i := range size {
		hosttest.Write(&h, t, strconv.Itoa(i), "")
	}
	for n, l := range map[int]*host.Listing{0: host.List(&h, h.Dir), size: host.ListAll(&h, h.Dir)} {
		sorted := slices.IsSortedFunc(l.Entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		if len(l.All) != n || len(l.Entries) != host.MaxListed+1 || !sorted || l.Lacks("x") {
			t.Errorf("%d of %d entries, %d of them to be looked at, sorted: %v, x is said to be missing: %v", len(l.All), size, len(l.Entries), sorted, l.Lacks("x"))
		}
	}
}
