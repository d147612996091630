//go:build !linux

package files

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// List lists the first n entries of a directory, or all of them if n is -1. os.Open would
// start the runtime's poller, which is of no use for a directory.
func List(dir string, n int) ([]fs.DirEntry, error) {
	fd, err := open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	entries, err := f.ReadDir(n)
	if err == io.EOF {
		err = nil
	}
	return entries, err
}

// CountsDirs reports whether the links of a directory tell how many directories are in it. On
// APFS they don't.
func CountsDirs(string) bool { return false }
