package landlock

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// openPath opens a rule's path as a mere reference to an inode and checks it.
func openPath(r *PathRule) (int, error) {
	fd, err := openNoLinks(r.Path)
	if err != nil {
		return -1, &PathError{r.Path, r.Origin, changedBy(err), err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, &PathError{r.Path, r.Origin, false, err}
	}
	id := policy.FileID{Dev: st.Dev, Ino: st.Ino}
	if id != r.ID && !(id.Dev == r.ID.Dev && onProc(fd)) {
		unix.Close(fd)
		return -1, &PathError{r.Path, r.Origin, true, nil}
	}
	return fd, nil
}

// openNoLinks opens a path without following a link anywhere in it. Where
// openat2(2) is missing or refused by a container's filter, only a link in
// the last element is noticed here; one before that leads to another inode,
// which the caller notices.
func openNoLinks(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd := -1
	errno := fork.Retry(func() unix.Errno {
		var err error
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &how)
		errno, _ := err.(unix.Errno)
		return errno
	})
	switch errno {
	case 0:
		return fd, nil
	case unix.ENOSYS, unix.EPERM:
		return unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	return -1, errno
}

// changedBy reports whether an error of openNoLinks means that the path was
// another thing when it was resolved.
func changedBy(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// onProc reports whether a file lies on procfs, which gives some of its files a
// new inode number whenever the kernel has forgotten them.
func onProc(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
