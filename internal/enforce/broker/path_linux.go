package broker

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/procfs"
)

// MountOf returns the id of the mount that a path is on, or 0 if that is unknown.
func MountOf(path string) uint64 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &st) != nil {
		return 0
	}
	return st.Mnt_id
}

// fileSystem returns the device of an open file's file system. On btrfs and overlayfs that can
// differ from the file's device. It finds the device by the file's mount, in the caller's
// proc_pid_mountinfo(5).
func (c caller) fileSystem(fd int) (device [2]uint32, _ error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return device, err
	}
	mounts, err := files.ReadInto(procfs.Path(c.tid, "mountinfo"), make([]byte, 4096))
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

// route is a path of the caller and the directory that it starts from. The directory is opened
// with this process's rights.
type route struct {
	from int
	path string
	root int // the caller's root directory, which may be from
}

// route opens the directory that a path of the caller starts from.
func (c *Call) route(path string) (r route, errno unix.Errno) {
	r.path = path
	r.root, errno = c.open(unix.AT_FDCWD, procfs.Path(c.from.tid, "root"), 0)
	if errno != 0 || strings.HasPrefix(path, "/") {
		r.from = r.root
		return r, errno
	}
	r.from, errno = c.open(unix.AT_FDCWD, procfs.Path(c.from.tid, "cwd"), 0)
	return r, errno
}

// walk opens a route's target with O_PATH and this thread's rights. The caller of walk checks the
// inode. So if walk resolves a path differently from the kernel (links in a root directory that
// the command set), that can cause a refusal but never avoid one.
//
// RESOLVE_IN_ROOT (openat2(2)) keeps links inside the caller's root directory, so that the
// caller learns nothing of names outside it. It also follows no magic links of /proc, where
// /proc/self would be this process.
func (c *Call) walk(r route) (fd int, errno unix.Errno) {
	if r.from != r.root {
		fd, errno = c.open(r.from, r.path, unix.RESOLVE_NO_SYMLINKS)
		if errno != unix.ELOOP {
			return fd, errno
		}
		r.path = fork.PathOf(r.from) + "/" + r.path
	}
	fd, errno = c.open(r.root, r.path, unix.RESOLVE_IN_ROOT)
	if errno == unix.EXDEV {
		errno = unix.EACCES
	}
	return fd, errno
}

// open opens a path with O_PATH until the call is answered.
func (c *Call) open(dir int, path string, resolve uint64) (fd int, _ unix.Errno) {
	errno := patiently(func() unix.Errno { // EAGAIN if something was renamed meanwhile
		var err error
		fd, err = unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
		return asErrno(err)
	})
	if errno == 0 {
		c.descriptors = append(c.descriptors, fd)
	}
	return fd, errno
}
