package safepath

import (
	"cmp"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a file, or a directory and all that is in it, which a command may have closed or may
// go on writing to. It follows no link. What is not there is no error.
func RemoveTree(dir string) error {
	if os.Remove(dir) == nil {
		return nil
	}
	// Root needs no rights, and must not follow a link that is put there meanwhile.
	if st, err := os.Lstat(dir); err == nil && st.IsDir() && os.Geteuid() != 0 {
		os.Chmod(dir, 0o700)
	}
	root, err := OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for range 1 << 22 { // levels: a process that reap can't find may go on making more
		err = empty(root, func(name string) error { return raise(root, name) })
		if err == nil {
			err = unix.Rmdir(dir)
		}
		if !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &fs.PathError{Op: "remove", Path: dir, Err: err}
}

// empty removes the files and the empty directories in a directory, and calls more for each
// of the others.
func empty(root *os.Root, more func(name string) error) (failed error) {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	for err == nil {
		var names []string
		names, err = d.Readdirnames(1024)
		for _, name := range names {
			if root.Remove(name) != nil {
				_ = root.Chmod(name, 0o700) // the command may have taken rights away (a Go module cache)
				failed = cmp.Or(failed, more(name))
			}
		}
	}
	return failed
}

// raise removes a directory, and moves those in it up to root: however deep they are, few
// files are open at a time.
func raise(root *os.Root, name string) error {
	dir, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = empty(dir, func(below string) error {
		return root.Rename(filepath.Join(name, below), strconv.FormatUint(rand.Uint64(), 36))
	})
	return cmp.Or(err, root.Remove(name))
}
