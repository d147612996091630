package cmd

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

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
func openPool(create bool) (*os.File, error) {
	name := filepath.Join(poolParent, ".zsbx-"+strconv.Itoa(os.Geteuid()))
	f, err := openOwnDir(name)
	if os.IsNotExist(err) && create {
		if err = os.Mkdir(name, 0o700); err == nil || os.IsExist(err) {
			f, err = openOwnDir(name)
		}
	}
	return f, err
}

// takeUp gives a directory like makeTempDir's that was laid aside, or "".
func takeUp(parent string) string {
	if parent != poolParent {
		return ""
	}
	pool, err := openPool(false)
	if err != nil {
		return ""
	}
	defer pool.Close()
	dir := filepath.Join(parent, "zsbx-"+strconv.FormatUint(uint64(rand.Uint32()), 10))
	for n := range poolSize {
		err := unix.Renameat(int(pool.Fd()), strconv.Itoa(n), unix.AT_FDCWD, dir)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return ""
		}
		if isPristine(dir) {
			return dir
		}
		_ = removeTempDir(dir)
	}
	return ""
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
	defer pool.Close()
	for n := range poolSize {
		err := unix.Renameat(unix.AT_FDCWD, dir, int(pool.Fd()), strconv.Itoa(n))
		if err != unix.ENOTEMPTY && err != unix.EEXIST {
			return err == nil
		}
	}
	return false
}

// isPristine tells whether a temporary directory is as makeTempDir makes it:
// the user's alone, with nothing in it but the directory "run", and nothing in
// that.
func isPristine(dir string) bool {
	return isOwnDirWith(dir, "run") && isOwnDirWith(filepath.Join(dir, "run"))
}

// isOwnDirWith tells whether dir is a directory of the user's alone with these
// entries.
func isOwnDirWith(dir string, entries ...string) bool {
	f, err := openOwnDir(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	return err == nil && slices.Equal(names, entries)
}

// openOwnDir opens a directory of the user's alone, and no link to one.
func openOwnDir(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !isOwnDir(st) {
		f.Close()
		return nil, syscall.EPERM
	}
	return f, nil
}

// isOwnDir tells whether st is of a directory of the user's alone.
func isOwnDir(st os.FileInfo) bool {
	own, ok := st.Sys().(*syscall.Stat_t)
	return ok && st.Mode() == os.ModeDir|0o700 && int(own.Uid) == os.Geteuid()
}
