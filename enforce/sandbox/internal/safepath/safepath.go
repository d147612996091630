package safepath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNotOwner says that a directory belongs to somebody else.
var ErrNotOwner = errors.New("the directory above belongs to another user")

// MakeDir makes a directory and those above that are missing, all with the mode
// 0700. A link in the path is an error, one that has just been put there too.
func MakeDir(dir string) error { return makeDir(dir, false, 0o700) }

// MakeDirMode is MakeDir with another mode, of which the umask is taken off (mkdir(2)).
func MakeDirMode(dir string, mode uint32) error { return makeDir(dir, false, mode) }

// MakeOwnDir is MakeDir below a directory of the user's: the nearest one that
// exists must belong to the user of this process. Under sudo with the user's HOME,
// root would leave directories that the user can't write.
func MakeOwnDir(dir string) error { return makeDir(dir, true, 0o700) }

// Upwards lists a path and the directories above it, the root last.
func Upwards(path string) []string {
	out := []string{path}
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		out = append(out, path)
	}
	return out
}

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

// makeDir makes a directory and those above that are missing. No link is followed,
// whoever exchanges directories meanwhile: what is made is made in a directory that
// is held open. With own, the nearest one that exists has to be the user's.
func makeDir(dir string, own bool, mode uint32) error {
	all := Upwards(filepath.Clean(dir))
	at, err := -1, error(unix.ENOENT)
	missing := 0
	for ; missing < len(all); missing++ {
		if at, err = openDir(all[missing]); err != unix.ENOENT {
			break
		}
	}
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: all[min(missing, len(all)-1)], Err: err}
	}
	var st unix.Stat_t
	if own && missing > 0 && (unix.Fstat(at, &st) != nil || int(st.Uid) != os.Geteuid()) {
		unix.Close(at)
		return ErrNotOwner
	}
	for missing--; missing >= 0 && err == nil; missing-- {
		name, above := filepath.Base(all[missing]), at
		if err = unix.Mkdirat(above, name, mode); err == nil || err == unix.EEXIST {
			at, err = unix.Openat(above, name, searchOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			err = &os.PathError{Op: "mkdir", Path: all[missing], Err: err}
			at = above
			break
		}
		unix.Close(above)
	}
	unix.Close(at)
	return err
}

// OpenFile is os.OpenFile for a canonical path: a link in it is an error,
// one that has just been put there too.
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
