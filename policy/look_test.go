package policy

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// unseen are errors that leave unknown whether something is there.
var unseen = []error{syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ESTALE, syscall.ENOMEM, errors.ErrUnsupported}

// TestLook: only ENOENT and ENOTDIR say that nothing is there.
func TestLook(t *testing.T) {
	if (Found{}).Presence != Unknown {
		t.Error("the zero value is not Unknown")
	}
	look := func(err error) Found {
		h := &Host{Lstat: func(string) (Stat, error) { return Stat{}, err }}
		return h.Look("/x")
	}
	for _, err := range []error{syscall.ENOENT, syscall.ENOTDIR, fs.ErrNotExist, &fs.PathError{Err: syscall.ENOTDIR}} {
		if got := look(err); got.Presence != Absent || got.Err == nil {
			t.Errorf("%v: %+v", err, got)
		}
	}
	for _, err := range unseen {
		if got := look(err); got.Presence != Unknown || got.IsDir() || got.IsRegular() || got.IsLink() {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if got := look(nil); got.Presence != Present || !got.IsRegular() {
		t.Errorf("a file: %+v", got)
	}
	if f := (Found{}); f.IsRegular() || f.IsDir() || f.IsLink() {
		t.Error("what is unknown has a kind")
	}
}

// TestListingUnread: a directory that can't be listed is not empty, one that does not exist is.
func TestListingUnread(t *testing.T) {
	for _, err := range unseen {
		h := &Host{ReadDir: func(string, int) ([]fs.DirEntry, error) { return []fs.DirEntry{nil}, err }}
		if l := List(h, "/d"); l.Unread == nil || l.Lacks("x") || len(l.Entries) > 0 {
			t.Errorf("%v: %+v", err, l)
		}
		if l, err := h.Entries("/d", -1); err == nil || l != nil {
			t.Errorf("entries: %v, %v", l, err)
		}
	}
	for _, err := range []error{syscall.ENOENT, syscall.ENOTDIR} {
		h := &Host{ReadDir: func(string, int) ([]fs.DirEntry, error) { return nil, err }}
		if l := List(h, "/d"); l.Unread != nil || !l.Lacks("x") {
			t.Errorf("%v: %+v", err, l)
		}
	}
	if l := List(&Host{}, "/d"); l.Unread == nil || l.Lacks("x") {
		t.Errorf("a host without ReadDir: %+v", l)
	}
}

// TestWay: where it is unknown to what a path leads, the part that is known is told.
func TestWay(t *testing.T) {
	h := diskHost(t)
	in := h.Dir + "/"
	writeBelow(&h, t, "dir/file", "")
	if err := errors.Join(os.Symlink("dir", in+"link"), os.Symlink("loop2", in+"loop"), os.Symlink("loop", in+"loop2"), os.Symlink("none", in+"dangling")); err != nil {
		t.Fatal(err)
	}
	lstat := h.Lstat
	h.Lstat = func(p string) (Stat, error) {
		if p == in+"dir/closed" {
			return Stat{}, syscall.EACCES
		}
		return lstat(p)
	}
	for p, want := range map[string]struct {
		path     string
		presence Presence
		link     string
	}{
		"link/file":     {"dir/file", Present, "link"},
		"link/none/x":   {"dir/none/x", Absent, "link"},
		"link/file/x":   {"dir/file/x", Absent, "link"},
		"link/closed/x": {"dir/closed/x", Unknown, "link"},
		"dangling/x":    {"none/x", Absent, "dangling"},
	} {
		got := h.Way(in + p)
		if got.Path != in+want.path || got.Presence != want.presence || len(got.Links) != 1 || got.Links[0] != in+want.link {
			t.Errorf("%s: %+v", p, got)
		}
	}
	if got := h.Way(in + "loop/x"); got.Presence != Unknown || !errors.Is(got.Err, syscall.ELOOP) || len(got.Links) < 2 {
		t.Errorf("a loop: %+v", got)
	}
}

// TestRepositoryUnseen: a .git that can't be looked at is not taken for none, since the one
// further up would be opened instead.
func TestRepositoryUnseen(t *testing.T) {
	h := diskHost(t)
	for _, name := range []string{"objects/x", "refs/x", "HEAD"} {
		writeBelow(&h, t, ".git/"+name, "")
	}
	writeBelow(&h, t, "sub/x", "")
	top := h.Dir
	h.Dir += "/sub"
	all := func(string) Access { return Read | Write }
	if rules, skipped, _ := gitRules(&h, all); len(skipped) > 0 || len(rules) > 0 {
		t.Errorf("the repository of the tree: %v, %v", rules, skipped)
	}
	lstat := h.Lstat
	h.Lstat = func(p string) (Stat, error) {
		if p == h.Dir+"/.git" {
			return Stat{}, syscall.EACCES
		}
		return lstat(p)
	}
	none := func(p string) Access {
		if Within(p, h.Dir) {
			return Read | Write
		}
		return 0
	}
	if rules, skipped, _ := gitRules(&h, none); len(skipped) != 1 || len(rules) != 0 {
		t.Errorf("unknown: %v, %v; the repository is %s", rules, skipped, top)
	}
	if l := projectDirs(&h); len(l) != 1 {
		t.Errorf("%d directories belong to the project", len(l))
	}
}

// TestSpareUnseen: a place of secrets that can't be looked at is denied. The command could open
// the directory above it.
func TestSpareUnseen(t *testing.T) {
	for _, errno := range []error{syscall.EACCES, syscall.EIO, syscall.ELOOP} {
		h := diskHost(t)
		mkdirsBelow(&h, t, "project", ".gnupg")
		place := h.Home + "/.gnupg"
		home := h.Home
		h.Dir = home + "/project"
		lstat := h.Lstat
		h.Lstat = func(p string) (Stat, error) {
			if p == place {
				return Stat{}, errno
			}
			return lstat(p)
		}
		p := &Policy{FS: FS{Rules: []Rule{{Path: home, Access: Read | Write, Origin: Origin{Source: "--rw"}}}}}
		r, err := p.Resolve(h)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Allowed(place, Read); v.Allowed {
			t.Errorf("%v: %s is open", errno, place)
		}
	}
}
