package broker

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

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

// route is a path of the caller's and where it begins.
type route struct {
	from    int    // a file that is open to the caller already
	path    string // "" for from itself
	resolve uint64 // how it goes on (openat2(2))
}

// route finds where a path of the caller's begins, which counts from dirfd: at a file
// that this process has to have the right to look at. What begins with something of the
// caller's own in /proc is led to that here, since others have to write it otherwise.
func (c *Call) route(dirfd int, path string) (route, unix.Errno) {
	from, r := "cwd", route{path: path}
	if dirfd != unix.AT_FDCWD {
		from = "fd/" + strconv.Itoa(dirfd)
	}
	if strings.HasPrefix(path, "/") {
		from, r.resolve = "root", unix.RESOLVE_IN_ROOT
	}
	for prefix, below := range map[string]string{"/proc/self/": "", "/proc/thread-self/": "", procfs.Path(c.from.tid, ""): "", "/dev/fd/": "fd/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			from, r.path, _ = strings.Cut(below+rest, "/")
			if from == "fd" {
				from, r.path, _ = strings.Cut(r.path, "/")
				from = "fd/" + from
			}
			r.path, r.resolve = strings.TrimLeft(r.path, "/"), 0
		}
	}
	var err error
	if r.from, err = unix.Open(procfs.Path(c.from.tid, from), unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
		c.held = append(c.held, r.from)
	}
	return r, asErrno(err)
}

// walk opens what a route leads to, as a reference to an inode, with the rights of whoever
// asks. What it finds is checked by its inode, so that a path that is read otherwise than
// the kernel would (links in a root directory of the command's own, the magic ones of
// /proc) can lead to a refusal and not around one.
func (c *Call) walk(r route) (fd int, _ unix.Errno) {
	if r.path == "" {
		return r.from, 0
	}
	errno := patiently(func() unix.Errno { // EAGAIN where something is renamed meanwhile
		var err error
		fd, err = unix.Openat2(r.from, r.path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: r.resolve})
		return asErrno(err)
	})
	if errno == 0 {
		c.held = append(c.held, fd)
	}
	return fd, errno
}
