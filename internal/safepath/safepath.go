package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var ErrNotOwner = errors.New("the directory above belongs to another user")

// MakeDir makes a directory and the missing ones above it, with the mode less the umask
// (mkdir(2)). A link in the path is an error. Each directory is made in one that is held
// open, so it does no harm if directories are exchanged meanwhile. With own, the nearest
// one that exists must belong to the user of this process: under sudo with the user's
// HOME, root would leave directories that the user can't write.
func MakeDir(dir string, mode uint32, own bool) error {
	fd, err := makeDir(filepath.Clean(dir), mode, own)
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return unix.Close(fd)
}

// makeDir opens a directory, and makes it if it is missing.
func makeDir(dir string, mode uint32, own bool) (int, error) {
	fd, err := openDir(dir)
	if err != unix.ENOENT || dir == filepath.Dir(dir) {
		return fd, err
	}
	above, err := makeDir(filepath.Dir(dir), mode, own)
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	var st unix.Stat_t
	if own && (unix.Fstat(above, &st) != nil || int(st.Uid) != os.Geteuid()) {
		return -1, ErrNotOwner
	}
	err = unix.Mkdirat(above, filepath.Base(dir), mode)
	if err != nil && err != unix.EEXIST {
		return -1, err
	}
	return unix.Openat(above, filepath.Base(dir), SearchOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// MayMakeDir reports whether MakeDir would make a missing directory.
func MayMakeDir(dir string, own bool) bool {
	above := filepath.Dir(dir)
	st, err := os.Lstat(above)
	for errors.Is(err, fs.ErrNotExist) && above != "/" {
		above = filepath.Dir(above)
		st, err = os.Lstat(above)
	}
	if err != nil || !st.IsDir() || own && !OwnedBy(st, os.Geteuid()) {
		return false
	}
	return unix.Access(above, unix.W_OK|unix.X_OK) == nil
}

// OnlyMine refuses a link, and a file or directory that anybody but this user and root can
// change.
func OnlyMine(name string) error {
	st, err := os.Lstat(name)
	if err == nil && (!OwnedBy(st, os.Geteuid()) && !OwnedBy(st, 0) || st.Mode()&(fs.ModeSymlink|0o022) != 0) {
		err = fmt.Errorf("%s can be changed by others, or is a link", name)
	}
	return err
}

func OwnedBy(st fs.FileInfo, uid int) bool { return int(st.Sys().(*syscall.Stat_t).Uid) == uid }

// OpenRoot opens a directory as an os.Root; a link in its path is an error.
func OpenRoot(dir string) (*os.Root, error) {
	f, err := OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	want, err1 := f.Stat()
	got, err2 := root.Stat(".")
	if err1 != nil || err2 != nil || !os.SameFile(want, got) {
		root.Close()
		return nil, fs.ErrNotExist // exchanged in between
	}
	return root, nil
}

// OpenFile is os.OpenFile for a canonical path: a link in it is an error, even one that
// has just been put there.
func OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	dir, err := openDir(filepath.Dir(name))
	if err == nil {
		defer unix.Close(dir)
		var fd int
		fd, err = unix.Openat(dir, filepath.Base(name), flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
}

// OpenBelow opens what exists below a directory that is held open, whoever named it: a link in the path
// is an error, and so is a path that leads out. A directory that is nil has nothing.
func OpenBelow(dir *os.File, rel string, flags int) (*os.File, error) {
	err := error(fs.ErrNotExist)
	if dir != nil {
		var fd int
		fd, err = OpenAt(int(dir.Fd()), rel, flags)
		if err == nil {
			return os.NewFile(uintptr(fd), rel), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: rel, Err: err}
}

// OpenAt is OpenBelow for descriptors.
func OpenAt(dir int, rel string, flags int) (int, error) {
	if !filepath.IsLocal(rel) {
		return -1, fs.ErrNotExist
	}
	return openLong(dir, rel, flags)
}

// openLong is openBelow for a path that may be longer than the kernel takes one.
func openLong(dir int, rel string, flags int) (int, error) {
	if len(rel) < unix.PathMax {
		return openBelow(dir, rel, flags)
	}
	cut := strings.LastIndexByte(rel[:unix.PathMax], '/')
	if cut < 0 {
		return -1, unix.ENAMETOOLONG
	}
	below, err := openBelow(dir, rel[:cut], SearchOnly|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(below)
	return openLong(below, rel[cut+1:], flags)
}

// ReadLink returns what a symbolic link in an open directory says.
func ReadLink(dir int, name string) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, b)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(b[:n]), nil
}
