package broker

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// TestPin: the number of an allowed socket's inode is not used again while the broker lives,
// although the socket is removed. A file system such as ext4 gives it to the next file.
func TestPin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "allowed")
	l, id := listenAt(t, path)
	with := func(id host.FileID) *Broker {
		b := &Broker{policy: &Policy{Net: resolve.ResolvedNet{Unix: []resolve.Path{{Path: path, ID: id, Mode: fs.ModeSocket}}}}}
		if err := b.pin(); err != nil {
			t.Fatal(err)
		}
		return b
	}
	m := with(id)
	if !m.policy.allows(-1, id) {
		t.Error("control: the socket is not allowed")
	}
	other := id
	other.Ino++
	if with(other).policy.allows(-1, id) {
		t.Error("a socket is allowed that was replaced before it was pinned")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, f := range m.pins {
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) != nil || st.Nlink != 0 {
			t.Errorf("%+v is not the removed socket", st)
		}
	}
	if len(m.pins) != 1 {
		t.Fatalf("%d sockets are pinned", len(m.pins))
	}
	_ = l.Close() // the daemon ends, too
	dir := filepath.Dir(path)
	if again(t, dir, id) {
		t.Error("the number of a pinned socket was used again")
	}
	_ = m.pins[0].Close()
	t.Logf("control: unpinned, the number is used again: %t", again(t, dir, id)) // on ext4, not on tmpfs or btrfs
}

// listenAt listens on a path, until the test's end at the latest, and returns the socket's file.
func listenAt(t *testing.T, path string) (net.Listener, host.FileID) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return l, host.FileID{Dev: st.Dev, Ino: st.Ino}
}

// again reports whether one of many new sockets gets a file's number.
func again(t *testing.T, dir string, id host.FileID) bool {
	for n := range 100 {
		l, is := listenAt(t, filepath.Join(dir, strconv.Itoa(n)))
		defer l.Close()
		if is.Ino == id.Ino {
			return true
		}
	}
	return false
}
