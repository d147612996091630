package safepath

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory that need not be readable (open(2)).
const searchOnly = unix.O_PATH

// openDir opens a directory by a path without any symbolic link in it.
func openDir(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// ChangeTime returns a file's status change time (inode(7)), which cannot be set.
func ChangeTime(st fs.FileInfo) time.Time {
	return time.Unix(st.Sys().(*syscall.Stat_t).Ctim.Unix())
}
