package attack_test

import (
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// volumeRequest is struct btrfs_ioctl_vol_args (linux/btrfs.h).
type volumeRequest struct {
	fd   int64
	name [4088]byte
}

// subvolumeActs make subvolumes of btrfs(5), for which no rule for paths is checked.
func subvolumeActs() map[string]func(args []string) error {
	const makeSnapshot, makeSubvolume = 0x50009401, 0x5000940e
	return map[string]func([]string) error{
		"snapshot": func(a []string) error { // FROM DIR NAME
			from, err := unix.Open(a[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(from)
			q := volumeRequest{fd: int64(from)}
			copy(q.name[:], a[2])
			return onDir(a[1], makeSnapshot, unsafe.Pointer(&q))
		},
		"subvolume": func(a []string) error { // DIR NAME
			var q volumeRequest
			copy(q.name[:], a[1])
			return onDir(a[0], makeSubvolume, unsafe.Pointer(&q))
		},
	}
}

// TestSubvolumes: no snapshot of a writable tree shows a file that is denied in it, and no
// subvolume can be made in a readable directory.
func TestSubvolumes(t *testing.T) {
	needSeccomp(t)
	needLandlock(t, 1)
	p := newPlace(t)
	// On any file system and for any user, since the filter refuses the call first.
	if got := p.try(t, p.plan(), "snapshot", p.in, p.in, "x"); got != unix.EPERM {
		t.Errorf("snapshot: %v", got)
	}
	if got := p.try(t, nil, "snapshot", p.in, p.in, "x"); got == unix.EPERM {
		t.Errorf("control: snapshot: %v", got)
	}
	dir := p.in + "/mounted"
	mountImage(t, p, dir, "mkfs.btrfs", "-q")
	for _, c := range []struct {
		act  string
		args []string
	}{{"snapshot", []string{dir, dir, "copy"}}, {"subvolume", []string{dir, "new"}}} {
		made := dir + "/" + c.args[len(c.args)-1]
		if got := p.try(t, p.plan(), c.act, c.args...); got != unix.EPERM {
			t.Errorf("%s: %v", c.act, got)
		}
		if _, err := os.Lstat(made); err == nil {
			t.Errorf("%s was made", made)
		}
		if got := p.try(t, nil, c.act, c.args...); got != 0 {
			t.Errorf("control: %s without zsbx: %v", c.act, got)
		}
		if _, err := os.Lstat(made); err != nil {
			t.Errorf("control: %v", err)
		}
	}
}

// mountImage mounts a new file system that a command makes.
func mountImage(t *testing.T, p *place, at string, mkfs ...string) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	testkit.NeedProgram(t, mkfs[0])
	image := p.out + "/image"
	os.Mkdir(at, 0o755)
	for _, c := range [][]string{{"truncate", "-s", "128M", image}, append(mkfs, image), {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", c, err, out)
		}
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
}
