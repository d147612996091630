package broker

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// mountPoint identifies a directory and the mount it was reached by.
type mountPoint struct{ mount, ino uint64 }

// MountOf is the mount that a path leads to, 0 if it can't be told.
func MountOf(path string) uint64 {
	at, _ := mountOf(path)
	return at.mount
}

func mountOf(path string) (mountPoint, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return mountPoint{}, err
	}
	return mountPoint{st.Mnt_id, st.Ino}, nil
}

// fileSystem is the device of the file system that an open file of the caller
// is on, by its mount (proc_pid_mountinfo(5)).
func (c caller) fileSystem(fd int) (device [2]uint32, _ error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return device, err
	}
	mounts, err := procfs.Read(procfs.Path(c.tid, "mountinfo"), make([]byte, 4096))
	if err != nil {
		return device, err
	}
	id := strconv.FormatUint(st.Mnt_id, 10)
	for _, m := range procfs.Mounts(string(mounts)) {
		if m.ID == id {
			_, err := fmt.Sscanf(m.Dev, "%d:%d", &device[0], &device[1])
			return device, err
		}
	}
	return device, unix.ENOENT
}

// procSelf splits a path that begins with something of the caller's own that only
// the kernel can follow (its directories and descriptors in /proc) into that,
// as others have to write it, and the rest.
func (c caller) procSelf(path string) (link, rest string, ok bool) {
	for _, self := range []struct{ prefix, below string }{{"/proc/self/", ""}, {"/proc/thread-self/", ""},
		{fmt.Sprintf("/proc/%d/", c.tid), ""}, {"/dev/fd/", "fd/"}} {
		if below, cut := strings.CutPrefix(path, self.prefix); cut {
			path, ok = self.below+below, true
			break
		}
	}
	if !ok {
		return "", "", false
	}
	first, rest, _ := strings.Cut(path, "/")
	if first == "fd" {
		first, rest, _ = strings.Cut(rest, "/")
		first = "fd/" + first
	}
	return fmt.Sprintf("/proc/%d/%s", c.tid, first), strings.TrimLeft(rest, "/"), true
}

// route is a path of the caller's and where it begins.
type route struct {
	from   int    // a directory, or AT_FDCWD
	path   string // "" for from itself
	inRoot bool   // from is a root directory
}

// route finds where a path of the caller's begins, which counts from dirfd: in a
// directory that is open to it already, which this process has to have the right to look at.
func (c caller) route(dirfd int, path string, own mountPoint) (r route, held []int, _ unix.Errno) {
	r = route{from: unix.AT_FDCWD, path: path}
	from := fmt.Sprintf("/proc/%d/cwd", c.tid)
	if dirfd != unix.AT_FDCWD {
		from = fmt.Sprintf("/proc/%d/fd/%d", c.tid, dirfd)
	}
	if link, rest, ok := c.procSelf(path); ok {
		from, r.path = link, rest
	} else if strings.HasPrefix(path, "/") {
		from = fmt.Sprintf("/proc/%d/root", c.tid)
		at, err := mountOf(from)
		if err != nil {
			return r, nil, asErrno(err)
		}
		if at == own {
			return r, nil, 0
		}
		r.inRoot = true
	}
	var err error
	if r.from, err = unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return r, nil, asErrno(err)
	}
	return r, []int{r.from}, 0
}

// Walk opens what a route leads to, as a reference to an inode. What it finds is
// checked by its inode, so that a path that is read otherwise than the kernel
// would (links in a root directory of the command's own, the magic ones of
// /proc) can lead to a refusal and not around one.
func (r route) Walk() (int, unix.Errno) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	var fd int
	var err error
	switch {
	case r.path == "":
		fd, err = unix.FcntlInt(uintptr(r.from), unix.F_DUPFD_CLOEXEC, 0)
	case r.inRoot:
		how.Resolve |= unix.RESOLVE_IN_ROOT
		fd, err = unix.Openat2(r.from, r.path, &how)
	default:
		fd, err = unix.Openat(r.from, r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	return fd, asErrno(err)
}
