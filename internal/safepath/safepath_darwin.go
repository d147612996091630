package safepath

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SearchOnly opens a directory that need not be readable: O_SEARCH of open(2),
// which is O_EXEC for directories.
const SearchOnly = 0x40000000

// openDir opens a directory by a path without any symbolic link in it.
func openDir(path string) (int, error) {
	return unix.Open(path, SearchOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW_ANY|unix.O_CLOEXEC, 0)
}

// openBelow opens a path below a directory. Links in it are errors.
func openBelow(dir int, rel string, flags int) (int, error) {
	return unix.Openat(dir, rel, flags|unix.O_NOFOLLOW_ANY|unix.O_CLOEXEC, 0)
}

// unlock gives the owner of a directory all rights. Root needs none.
func unlock(dir int, name string) {
	if os.Geteuid() != 0 {
		_ = unix.Fchmodat(dir, name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
	}
}

// ChangeTime returns a file's status change time (inode(7)), which cannot be set.
func ChangeTime(st fs.FileInfo) time.Time {
	return time.Unix(st.Sys().(*syscall.Stat_t).Ctimespec.Unix())
}
