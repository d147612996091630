package safepath

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a file, or a directory and all that is in it, which a command may have closed or may
// go on writing to. It follows no link. What is not there is no error.
func RemoveTree(name string) error {
	above, err := openDir(filepath.Dir(name))
	if err == unix.ENOENT {
		return nil
	}
	if err == nil {
		defer unix.Close(above)
		err = RemoveAt(above, filepath.Base(name))
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// RemoveAt is RemoveTree for what an open directory has by a name.
func RemoveAt(dir int, name string) error {
	err := remove(dir, name)
	if err != unix.ENOTEMPTY {
		return err
	}
	unlock(dir, name)
	top, err := OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return unlessGone(err)
	}
	defer unix.Close(top)
	for range 1 << 22 { // levels: a process that reap can't find may go on making more
		err = empty(top, func(name string) error { return raise(top, name) })
		if err == nil {
			err = remove(dir, name)
		}
		if err != unix.ENOTEMPTY {
			break
		}
	}
	return err
}

// remove removes a file or an empty directory. What is not there is no error.
func remove(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == unix.EISDIR || err == unix.EPERM { // macOS has the second for directories
		noFile := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		if noFile != unix.ENOTDIR {
			err = noFile
		}
	}
	return unlessGone(err)
}

// unlessGone returns an error, or nil if it says that a file is not there.
func unlessGone(err error) error {
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// empty removes the files and the empty directories in a directory, and calls more for each of the others.
func empty(dir int, more func(name string) error) (failed error) {
	fd, err := OpenAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return unlessGone(err)
	}
	d := os.NewFile(uintptr(fd), ".")
	defer d.Close()
	for err == nil {
		var names []string
		names, err = d.Readdirnames(1024)
		for _, name := range names {
			left := remove(dir, name)
			if left == unix.ENOTEMPTY {
				unlock(dir, name) // the command may have taken rights away (a Go module cache)
				left = more(name)
			}
			failed = cmp.Or(failed, left)
		}
	}
	if err != io.EOF && !errors.Is(err, fs.ErrNotExist) {
		failed = cmp.Or(failed, err)
	}
	return failed
}

// raise removes a directory, and moves those in it up to top: however deep they are, few
// files are open at a time.
func raise(top int, name string) error {
	dir, err := OpenAt(top, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return unlessGone(err)
	}
	defer unix.Close(dir)
	err = empty(dir, func(below string) error {
		return unlessGone(unix.Renameat(dir, below, top, strconv.FormatUint(rand.Uint64(), 36)))
	})
	return cmp.Or(err, remove(top, name))
}
