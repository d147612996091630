package host_test

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
)

// unseen are errors that leave unknown whether something is there.
var unseen = []error{syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ESTALE, syscall.ENOMEM, errors.ErrUnsupported}

// TestLook: only ENOENT and ENOTDIR say that nothing is there.
func TestLook(t *testing.T) {
	if (host.Found{}).Presence != host.Unknown {
		t.Error("the zero value is not Unknown")
	}
	look := func(err error) host.Found {
		h := &host.Host{Lstat: func(string) (host.Stat, error) { return host.Stat{}, err }}
		return h.Look("/x")
	}
	for _, err := range []error{syscall.ENOENT, syscall.ENOTDIR, fs.ErrNotExist, &fs.PathError{Err: syscall.ENOTDIR}} {
		if got := look(err); got.Presence != host.Absent || got.Err == nil {
			t.Errorf("%v: %+v", err, got)
		}
	}
	for _, err := range unseen {
		if got := look(err); got.Presence != host.Unknown || got.IsDir() || got.IsRegular() || got.IsLink() {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if got := look(nil); got.Presence != host.Present || !got.IsRegular() {
		t.Errorf("a file: %+v", got)
	}
	if f := (host.Found{}); f.IsRegular() || f.IsDir() || f.IsLink() {
		t.Error("what is unknown has a kind")
	}
}

// TestListingUnread: a directory that can't be listed is not empty, one that does not exist is.
func TestListingUnread(t *testing.T) {
	for _, err := range unseen {
		h := &host.Host{ReadDir: func(string, int) ([]fs.DirEntry, error) { return []fs.DirEntry{nil}, err }}
		if l := host.List(h, "/d"); l.Unread == nil || l.Lacks("x") || len(l.Entries) > 0 {
			t.Errorf("%v: %+v", err, l)
		}
		if l, err := h.Entries("/d", -1); err == nil || l != nil {
			t.Errorf("entries: %v, %v", l, err)
		}
	}
	for _, err := range []error{syscall.ENOENT, syscall.ENOTDIR} {
		h := &host.Host{ReadDir: func(string, int) ([]fs.DirEntry, error) { return nil, err }}
		if l := host.List(h, "/d"); l.Unread != nil || !l.Lacks("x") {
			t.Errorf("%v: %+v", err, l)
		}
	}
	if l := host.List(&host.Host{}, "/d"); l.Unread == nil || l.Lacks("x") {
		t.Errorf("a host without ReadDir: %+v", l)
	}
}

// TestWay: where it is unknown to what a path leads, the part that is known is told.
func TestWay(t *testing.T) {
	h := hosttest.Disk(t)
	in := h.Dir + "/"
	hosttest.Write(&h, t, "dir/file", "")
	if err := errors.Join(os.Symlink("dir", in+"link"), os.Symlink("loop2", in+"loop"), os.Symlink("loop", in+"loop2"), os.Symlink("none", in+"dangling")); err != nil {
		t.Fatal(err)
	}
	lstat := h.Lstat
	h.Lstat = func(p string) (host.Stat, error) {
		if p == in+"dir/closed" {
			return host.Stat{}, syscall.EACCES
		}
		return lstat(p)
	}
	for p, want := range map[string]struct {
		path     string
		presence host.Presence
		link     string
	}{
		"link/file":     {"dir/file", host.Present, "link"},
		"link/none/x":   {"dir/none/x", host.Absent, "link"},
		"link/file/x":   {"dir/file/x", host.Absent, "link"},
		"link/closed/x": {"dir/closed/x", host.Unknown, "link"},
		"dangling/x":    {"none/x", host.Absent, "dangling"},
	} {
		got := h.Way(in + p)
		if got.Path != in+want.path || got.Presence != want.presence || len(got.Links) != 1 || got.Links[0] != in+want.link {
			t.Errorf("%s: %+v", p, got)
		}
	}
	if got := h.Way(in + "loop/x"); got.Presence != host.Unknown || !errors.Is(got.Err, syscall.ELOOP) || len(got.Links) < 2 {
		t.Errorf("a loop: %+v", got)
	}
}

// TestBelowNothing: below what is missing, or is no directory, a path goes on as it is written. The control is a
// directory that is there.
func TestBelowNothing(t *testing.T) {
	h := hosttest.Table(map[string]string{"/w/file": "file", "/w/to": "-> none/../dir/x", "/w/dir/x": "-> ../file"})
	for p, want := range map[string]string{
		"/w/none/a//./b/": "/w/none/a/b", "/w/none/../dir/x": "/w/dir/x", "/w/file/../../u": "/u", "/w/none/../../../..": "/",
		"/w/to/y": "/w/dir/x/y", "/w/./dir/../dir/x": "/w/file",
	} {
		way := h.Way(p)
		there := way.Path == "/w/file"
		if way.Path != want || (way.Presence == host.Present) != there {
			t.Errorf("%s leads to %s, %v", p, way.Path, way.Found)
		}
	}
}
