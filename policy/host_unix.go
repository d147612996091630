//go:build linux || darwin

package policy

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// lstat is Host.Lstat for the running system. It is os.Lstat without what
// Resolve does not need: a policy looks at some hundred files before the
// command starts.
func lstat(name string) (Stat, error) {
	var st syscall.Stat_t
	for {
		err := syscall.Lstat(name, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return Stat{}, err
		}
		return Stat{Mode: fileMode(uint32(st.Mode)), ID: FileID{Dev: uint64(st.Dev), Ino: st.Ino}, Links: uint64(st.Nlink)}, nil
	}
}

// fileMode translates st_mode (inode(7)).
func fileMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & syscall.S_IFMT {
	case syscall.S_IFDIR:
		mode |= fs.ModeDir
	case syscall.S_IFLNK:
		mode |= fs.ModeSymlink
	case syscall.S_IFBLK:
		mode |= fs.ModeDevice
	case syscall.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case syscall.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case syscall.S_IFSOCK:
		mode |= fs.ModeSocket
	case syscall.S_IFREG:
	default:
		mode |= fs.ModeIrregular
	}
	return mode
}

// workingDirectory is getcwd(3). $PWD is not asked: it may be spelled through
// symbolic links, and it is the caller's word.
func workingDirectory() (string, error) {
	dir, err := syscall.Getwd()
	if err == syscall.ENOENT || err == nil && !strings.HasPrefix(dir, "/") {
		return "", ErrNoDirectory
	}
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	return dir, nil
}

// openRegular opens a regular file of at most MaxFileSize bytes. It does not
// block on a FIFO and does not touch a device's state but by opening it.
// os.OpenFile would have the runtime poll the file, with threads that take a
// start longer than the file.
func openRegular(name string) (io.ReadCloser, error) {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	for err == syscall.EINTR {
		fd, err = syscall.Open(name, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	_ = syscall.SetNonblock(fd, false)
	f := os.NewFile(uintptr(fd), name)
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = fmt.Errorf("it is %s, not a regular file", kindOf(st.Mode()))
	case st.Size() > MaxFileSize:
		err = fmt.Errorf("it has %d bytes: the most is %d", st.Size(), MaxFileSize)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSome is Host.ReadSome for the running system. os.Open would start the
// runtime's poller, which a directory has no use for.
func readSome(dir string, n int) ([]fs.DirEntry, error) {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	entries, err := f.ReadDir(n)
	if err == io.EOF {
		err = nil
	}
	return entries, err
}

// kindOf names a type of file.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
