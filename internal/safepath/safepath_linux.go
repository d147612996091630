package safepath

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SearchOnly opens a directory that need not be readable (open(2)).
const SearchOnly = unix.O_PATH

// openDir opens a directory by a path without any symbolic link in it.
func openDir(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// openBelow opens a path below a directory. Links in it and other mounts are errors.
func openBelow(dir int, rel string, flags int) (int, error) {
	return unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   uint64(flags) | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
}

// unlock gives the owner of a directory all rights. Root needs none.
func unlock(dir int, name string) {
	if os.Geteuid() == 0 {
		return
	}
	fd, err := openBelow(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700) // that directory, whatever has its name by now
		_ = unix.Close(fd)
	}
}

// ChangeTime returns a file's status change time (inode(7)), which cannot be set.
func ChangeTime(st fs.FileInfo) time.Time {
	return time.Unix(st.Sys().(*syscall.Stat_t).Ctim.Unix())
}
