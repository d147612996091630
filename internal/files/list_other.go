//go:build !linux

package files

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// List lists at most n entries of a directory, those that come first in it; all of them
// with -1. os.Open would start the runtime's poller, which a directory has no use for.
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
