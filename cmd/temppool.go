package cmd

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Making and removing two directories takes a file system on a disk longer
// than all else that zsbx does for a start. So a private temporary directory in
// which a command left nothing is laid aside, and taken up again by a later
// run under a new name.

// poolSize is how many directories are laid aside at most.
const poolSize = 4

// poolParent is the only directory in which any are: it is the machine's to
// tidy up.
const poolParent = "/tmp"

// openPool opens the directory in which the user's are laid aside, which must
// be the user's alone: whoever comes first can make one of its name.
func openPool(create bool) (int, error) {
	name := filepath.Join(poolParent, ".zsbx-"+strconv.Itoa(os.Geteuid()))
	fd, err := openOwnDir(name)
	if err == unix.ENOENT && create {
		if err = unix.Mkdir(name, 0o700); err == nil || err == unix.EEXIST {
			fd, err = openOwnDir(name)
		}
	}
	return fd, err
}

// takeUp gives a directory like makeTempDir's that was laid aside, or "".
func takeUp(parent string) (dir string, held int) {
	if parent != poolParent {
		return "", -1
	}
	pool, err := openPool(false)
	if err != nil {
		return "", -1
	}
	defer unix.Close(pool)
	dir = filepath.Join(parent, "zsbx-"+strconv.FormatUint(uint64(rand.Uint32()), 10))
	for n := range poolSize {
		err := unix.Renameat(pool, strconv.Itoa(n), unix.AT_FDCWD, dir)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return "", -1
		}
		held, err := holdDir(dir)
		if err == nil && isPristine(dir) && asNew(dir) {
			return dir, held
		}
		unix.Close(held)
		_ = removeTempDir(dir)
	}
	return "", -1
}

// asNew gives a directory and the one in it the present time: what an earlier
// command set is nothing for the next one to read.
func asNew(dir string) bool {
	t := unix.NsecToTimespec(time.Now().UnixNano())
	now := []unix.Timespec{t, t}
	return unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, "run"), now, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.UtimesNanoAt(unix.AT_FDCWD, dir, now, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// layAside keeps a temporary directory for a later run. It is false if the
// directory has to be removed: something is in it, or others are enough.
func layAside(dir string) bool {
	if filepath.Dir(dir) != poolParent || !isPristine(dir) {
		return false
	}
	pool, err := openPool(true)
	if err != nil {
		return false
	}
	defer unix.Close(pool)
	for n := range poolSize {
		err := unix.Renameat(unix.AT_FDCWD, dir, pool, strconv.Itoa(n))
		if err != unix.ENOTEMPTY && err != unix.EEXIST {
			return err == nil
		}
	}
	return false
}

// isPristine reports whether a temporary directory is as makeTempDir makes it:
// the user's alone, with nothing in it but the directory "run", and nothing in
// that. Neither has attributes: files take a default ACL (acl(5)) and most
// flags from their directory, and would carry them to wherever they are moved.
// Neither has grown: some file systems never make a directory smaller again. Of
// an earlier command only the inode number and the time of its making are left,
// which no command chooses.
func isPristine(dir string) bool {
	return isOwnDirWith(dir, "run") && isOwnDirWith(filepath.Join(dir, "run"))
}

// isOwnDirWith reports whether dir is a plain directory of the user's alone with
// these entries.
func isOwnDirWith(dir string, entries ...string) bool {
	fd, err := openOwnDir(dir)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Size > int64(st.Blksize) || !isPlain(fd) {
		return false
	}
	buf := make([]byte, 512) // more than that has more entries
	n, err := unix.ReadDirent(fd, buf)
	if err != nil {
		return false
	}
	_, _, names := unix.ParseDirent(buf[:n], -1, nil)
	if !slices.Equal(names, entries) {
		return false
	}
	n, err = unix.ReadDirent(fd, buf)
	return n == 0 && err == nil
}

// openOwnDir opens a directory of the user's alone, and no link to one. Package
// os would ask epoll(7) about it.
func openOwnDir(name string) (int, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode != unix.S_IFDIR|0o700 || int(st.Uid) != os.Geteuid() {
		unix.Close(fd)
		return -1, unix.EPERM
	}
	return fd, nil
}
