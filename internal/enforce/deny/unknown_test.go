package deny

import (
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestUnknown: if one look-up fails so that it is unknown what is there, then everything that was
// closed without the fault is closed, or a denial is said not to be held. And what is made later
// is reported, or something is said that can't be seen. So it is too if files in directories
// without others are looked up.
func TestUnknown(t *testing.T) {
	for _, name := range []string{"*.pem", "x.pem"} {
		for _, counts := range []bool{false, true} {
			testUnknown(t, name, counts)
		}
	}
}

// testUnknown is TestUnknown with files of that name denied.
func testUnknown(t *testing.T, name string, counts bool) {
	files := []string{"/t/a/secret/key", "/t/b/c/x.pem", "/t/b/x.pem", "/t/plain", "/t/d/x.pem@"}
	denials := []resolve.DenyPath{lit("/t/a/secret"), wild("/t/**/" + name), lit("/t/plain"), lit("/t/none/x")}
	type lookUp struct{ doing, path string }
	var asked []lookUp
	var bad lookUp
	var errno error
	plain := fakeHost(files...)
	h := *plain
	h.CountsDirs = func(string) bool { return counts }
	fails := func(l lookUp) error {
		asked = append(asked, l)
		if l == bad {
			return errno
		}
		return nil
	}
	h.Lstat = func(p string) (host.Stat, error) {
		if err := fails(lookUp{"lstat", p}); err != nil {
			return host.Stat{}, err
		}
		return plain.Lstat(p)
	}
	h.Readlink = func(p string) (string, error) {
		if err := fails(lookUp{"readlink", p}); err != nil {
			return "", err
		}
		return "../plain", nil
	}
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		if err := fails(lookUp{"readdir", p}); err != nil {
			return nil, err
		}
		return plain.ReadDir(p, n)
	}
	for _, access := range []policy.Access{policy.Read, policy.Read | policy.Write} {
		bad = lookUp{}
		request := func() Cut {
			asked = nil
			return Subtract(Request{Trees: []Tree{{Path: "/t", Access: access, Mode: fs.ModeDir}}, Deny: denials, Host: &h})
		}
		open := func(c Cut, p string) bool {
			covers := func(t Tree) bool { return !t.ListOnly && host.Within(p, t.Path) }
			return slices.ContainsFunc(c.Trees, covers) && !slices.ContainsFunc(c.Masks, covers)
		}
		base := request()
		all := asked
		slices.SortFunc(all, func(a, b lookUp) int { return slices.Compare([]string{a.doing, a.path}, []string{b.doing, b.path}) })
		all = slices.Compact(all)
		if len(base.Unenforced) > 0 || len(all) < 8 {
			t.Fatalf("without a fault: %v, %d look-ups", base.Unenforced, len(all))
		}
		for _, bad = range all {
			for _, errno = range []error{syscall.EACCES, syscall.EIO, syscall.ELOOP} {
				got := request()
				for _, p := range []string{"/t/a/secret/key", "/t/b/c/x.pem", "/t/b/x.pem", "/t/plain"} {
					if open(base, p) {
						t.Fatalf("without a fault %s is open", p)
					}
					if open(got, p) && len(got.Unenforced) == 0 {
						t.Errorf("%s, %v, %v: %s of %s: %v: nothing is said, and %s is open", name, counts, access, bad.doing, bad.path, errno, p)
					}
				}
			}
		}
	}
	bad = lookUp{}
	asked = nil
	before := Existing(&h, []string{"/t"}, denials, nil)
	all := slices.Clone(asked)
	for _, bad = range all {
		for _, errno = range []error{syscall.EACCES, syscall.EIO, syscall.ELOOP} {
			now := Existing(&h, []string{"/t"}, denials, nil)
			said := false
			for p := range now {
				_, had := before[p]
				said = said || !had
			}
			missing := false
			for p := range before {
				_, has := now[p]
				missing = missing || !has
			}
			if missing && !said {
				t.Errorf("%s, %v: %s of %s: %v: nothing is said", name, counts, bad.doing, bad.path, errno)
			}
		}
	}
}

// TestUnknownLink: a file that a rule opens may be another name of a denied file that can't be
// looked at. A file with one name is not, and neither is one whose denied name the command can't
// reach.
func TestUnknownLink(t *testing.T) {
	for _, c := range []struct {
		name       string
		errno      error
		owner      uint32
		names      uint64
		unenforced int
	}{
		{"two names", syscall.EIO, 0, 2, 1},
		{"one name", syscall.EIO, 0, 1, 0},
		{"a directory of the user", syscall.EACCES, 1000, 2, 1},
		{"a directory of others", syscall.EACCES, 0, 2, 0},
		{"it does not exist", syscall.ENOENT, 1000, 2, 0},
	} {
		h := fakeHost("/s/key", "/alias")
		h.UID = 1000
		lstat := h.Lstat
		h.Lstat = func(p string) (host.Stat, error) {
			if p == "/s/key" || p == "/s/." {
				return host.Stat{}, c.errno
			}
			st, err := lstat(p)
			st.UID, st.Nlink = c.owner, c.names
			return st, err
		}
		got := Subtract(Request{Trees: []Tree{{Path: "/alias", Access: policy.Read}}, Deny: []resolve.DenyPath{lit("/s/key")}, Host: h})
		if len(got.Unenforced) != c.unenforced {
			t.Errorf("%s: %+v", c.name, got.Unenforced)
		}
	}
}
