package layer

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForeign: what root's command gives to another user or group is noted, and is not refused. The control: owners
// that the tree has there, that of the directory, and root's own. For others than root it is refused.
func TestForeign(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	above, err := look(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	const other = 54321
	owned := func(uid, gid uint32) *entry {
		return &entry{dir: dir, name: "f", mode: 0o644, st: unix.Stat_t{Uid: uid, Gid: gid, Nlink: 1}}
	}
	for _, c := range []struct {
		what    string
		up, low *entry
		foreign bool
	}{
		{"new, of another user", owned(other, 0), nil, true},
		{"new, of another group", owned(0, other), nil, true},
		{"new, as its directory", owned(above.st.Uid, above.st.Gid), nil, false},
		{"new, of root", owned(0, 0), nil, false},
		{"given away", owned(other, 0), owned(0, 0), true},
		{"with another group", owned(0, other), owned(0, 0), true},
		{"as before", owned(other, other), owned(other, other), false},
		{"taken by root", owned(0, 0), owned(other, other), false},
	} {
		root := &reader{gids: []int{0}, most: 1}
		a := attributes{strange: "no content is compared"}
		if err := root.compare(place{path: "f"}, c.up, c.low, a, nil); err != nil {
			t.Fatal(err)
		}
		got := root.Changes[0].Foreign
		if (got != "") != c.foreign || root.refused(c.up, c.low, attributes{}) != "" {
			t.Errorf("%s: %q, %+v", c.what, got, root.Changes[0])
		}
		user := &reader{uid: 12345, gids: []int{12345}}
		if c.foreign && user.refused(c.up, c.low, attributes{}) == "" {
			t.Errorf("%s: another user may apply it", c.what)
		}
	}
}
