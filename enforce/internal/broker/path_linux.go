package broker

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/procfs"
)

// MountOf is the mount that a path leads to, 0 if it can't be told.
func MountOf(path string) uint64 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &st) != nil {
		return 0
	}
	return st.Mnt_id
}

// fileSystem is the device of the file system that an open file of the caller
// is on, by its mount (proc_pid_mountinfo(5)).
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

// route is a path of the caller's and the directory that it begins at, which is opened by
// the rights of this process.
type route struct {
	from int
	path string
	root int // the caller's root directory, which may be from
}

// route finds where a path of the caller's begins.
func (c *Call) route(path string) (r route, errno unix.Errno) {
	r.path = path
	if r.root, errno = c.open(unix.AT_FDCWD, procfs.Path(c.from.tid, "root"), 0); errno != 0 || strings.HasPrefix(path, "/") {
		r.from = r.root
		return r, errno
	}
	r.from, errno = c.open(unix.AT_FDCWD, procfs.Path(c.from.tid, "cwd"), 0)
	return r, errno
}

// walk opens what a route leads to, as a reference to an inode, with the rights of whoever
// asks. What it finds is checked by its inode, so that a path that is read otherwise than
// the kernel would (links in a root directory of the command's own) can lead to a refusal
// and not around one.
//
// No link leads out of the caller's root directory, where others may have files whose
// names are none of the caller's business, and none of /proc is followed (openat2(2),
// RESOLVE_IN_ROOT): /proc/self is this process there.
func (c *Call) walk(r route) (fd int, errno unix.Errno) {
	if r.from != r.root {
		if fd, errno = c.open(r.from, r.path, unix.RESOLVE_NO_SYMLINKS); errno != unix.ELOOP {
			return fd, errno
		}
		r.path = fork.PathOf(r.from) + "/" + r.path
	}
	if fd, errno = c.open(r.root, r.path, unix.RESOLVE_IN_ROOT); errno == unix.EXDEV {
		errno = unix.EACCES
	}
	return fd, errno
}

// open opens a path as a reference to an inode, for as long as the call takes.
func (c *Call) open(dir int, path string, resolve uint64) (fd int, _ unix.Errno) {
	errno := patiently(func() unix.Errno { // EAGAIN where something is renamed meanwhile
		var err error
		fd, err = unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
		return asErrno(err)
	})
	if errno == 0 {
		c.held = append(c.held, fd)
	}
	return fd, errno
}
