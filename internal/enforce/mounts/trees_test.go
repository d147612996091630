package mounts

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

func TestWritableTrees(t *testing.T) {
	rule := func(p string, mode fs.FileMode, a policy.Access) resolve.Path {
		return resolve.Path{Path: p, Mode: mode, Access: a}
	}
	rw := policy.Read | policy.Write
	got := WritableTrees([]resolve.Path{
		rule("/w/b", fs.ModeDir, rw), rule("/w", fs.ModeDir, rw), rule("/w", fs.ModeDir, rw), rule("/w/a", fs.ModeDir, rw), rule("/w-x", fs.ModeDir, rw),
		rule("/usr", fs.ModeDir, policy.Read), rule("/dev/null", fs.ModeDevice|fs.ModeCharDevice, rw), rule("/s", fs.ModeSocket, rw), rule("/f", 0, rw),
	})
	if want := []string{"/f", "/w", "/w-x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := WritableTrees([]resolve.Path{rule("/", fs.ModeDir, rw)}); got != nil {
		t.Errorf("/: got %q", got)
	}
	if got := WritableTrees(nil); got == nil {
		t.Error("none: all is to be read-only")
	}
}

func TestAliases(t *testing.T) {
	table := Table{Mounts: procfs.Mounts(strings.Join([]string{
		`1 0 8:1 / / rw - ext4 /dev/a rw`,
		`2 1 8:2 / /data rw - ext4 /dev/b rw`,
		`3 1 8:1 /home/u/w /mnt/w rw - ext4 /dev/a rw`,
		`4 1 8:1 /home /mnt/a\040b rw - ext4 /dev/a rw`,
		`5 1 8:1 /srv /home/u/w/hidden rw - ext4 /dev/a rw`,
		`6 4 0:9 / /mnt/a\040b/u/w rw - tmpfs none rw`,
	}, "\n"))}
	for _, c := range []struct {
		path string
		want []string
	}{
		{"/home/u/w/.env", []string{"/mnt/w/.env"}},
		{"/mnt/w/.env", []string{"/home/u/w/.env"}},
		{"/home/u/x", []string{"/mnt/a b/u/x"}},
		{"/data/x", nil},
		{"/home/u/w/hidden/x", []string{"/srv/x"}},
		{"/etc/x", nil},
	} {
		if got := table.Aliases(c.path); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}

// TestAgain: a tree that can be written by another path, too, is found.
func TestAgain(t *testing.T) {
	table := Table{Mounts: procfs.Mounts(strings.Join([]string{
		`1 0 8:1 / / rw - ext4 /dev/a rw`,
		`2 1 8:2 / /data rw - ext4 /dev/b rw`,
		`3 1 8:1 /home/u/w /mnt/w rw - ext4 /dev/a rw`,
		`4 1 8:1 /home/u/w/part /mnt/part rw - ext4 /dev/a rw`,
		`5 1 8:1 /home/u /mnt/u rw - ext4 /dev/a rw`,
		`6 5 0:9 / /mnt/u/w/other rw - tmpfs none rw`,
		`7 1 8:1 /home/u/w /mnt/covered rw - ext4 /dev/a rw`,
		`8 7 0:9 / /mnt/covered rw - tmpfs none rw`,
	}, "\n"))}
	for _, c := range []struct{ tree, writable, want string }{
		{"/home/u/w", "/mnt/w", "/mnt/w"},
		{"/home/u/w", "/mnt/w/sub", "/mnt/w/sub"},
		{"/home/u/w", "/mnt", "/mnt"},
		{"/home/u/w", "/mnt/part/x", "/mnt/part/x"},
		{"/home/u/w", "/mnt/u/w", "/mnt/u/w"},
		{"/mnt/w", "/home/u", "/home/u"},
		{"/mnt/part", "/home/u/w", "/home/u/w"},
		{"/mnt/w", "/mnt/part", "/mnt/part"},
		{"/home/u/w", "/home/u/x", ""},
		{"/home/u/w", "/mnt/u/x", ""},
		{"/home/u/w", "/mnt/u/w/other", ""},
		{"/home/u/w", "/mnt/covered", ""},
		{"/home/u/x", "/mnt/w", ""},
		{"/data/w", "/mnt/w", ""},
	} {
		if got := table.again(c.tree, []string{c.tree, c.writable}); got != c.want {
			t.Errorf("%s and %s: got %q, want %q", c.tree, c.writable, got, c.want)
		}
	}
}

// TestSame: a second name that can't be looked at may be the same file, if the command could open
// the directory that hides it.
func TestSame(t *testing.T) {
	table := Table{Mounts: procfs.Mounts("1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:1 /home/u/w /mnt/shut/w rw - ext4 /dev/a rw\n")}
	var hidden error
	owner := uint32(0)
	h := &host.Host{UID: 1000, Lstat: func(p string) (host.Stat, error) {
		if hidden != nil && strings.HasPrefix(p, "/mnt/shut/") {
			return host.Stat{}, hidden
		}
		return host.Stat{Mode: fs.ModeDir, UID: owner, ID: host.FileID{Dev: 1, Ino: 7}}, nil
	}}
	for _, c := range []struct {
		hidden error
		owner  uint32
		same   int
		unseen bool
	}{
		{nil, 0, 1, false},
		{syscall.ENOENT, 1000, 0, false},
		{syscall.EACCES, 0, 0, false}, // neither can the command
		{syscall.EACCES, 1000, 0, true},
		{syscall.EIO, 0, 0, true},
		{syscall.ELOOP, 1000, 0, true},
	} {
		hidden, owner = c.hidden, c.owner
		same, unseen := table.Same(h, "/home/u/w/.env")
		if len(same) != c.same || (unseen != nil) != c.unseen {
			t.Errorf("%v, of %d: %q, %v", c.hidden, c.owner, same, unseen)
		}
	}
	if _, unseen := (Table{Unread: syscall.EIO}).Same(h, "/home/u/w/.env"); unseen == nil {
		t.Error("the names are not known")
	}
}
