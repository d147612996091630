//go:build linux || darwin

package safepath

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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
