//go:build linux || darwin

package policy

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
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
		return Stat{Mode: FileMode(uint32(st.Mode)), ID: FileID{Dev: uint64(st.Dev), Ino: st.Ino}, Nlink: uint64(st.Nlink)}, nil
	}
}

// FileMode translates st_mode (inode(7)).
func FileMode(m uint32) fs.FileMode {
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

// ReadFile is Host.ReadFile for the running system, and what DecodeFile reads with:
// regular files of at most MaxFileSize bytes, as what is read may be a stranger's. It
// does not block on a FIFO and does not touch a device's state but by opening it. It
// is os.ReadFile without what a few kilobytes don't need: a start reads some such
// files.
func ReadFile(name string) ([]byte, error) {
	fd, err := openRetrying(name, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "fstat", Path: name, Err: err}
	}
	if mode := FileMode(uint32(st.Mode)); !mode.IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is %s, not a regular file", kindOf(mode))}
	}
	data := make([]byte, 0, max(4096, min(st.Size, MaxFileSize)+1)) // of /proc the size is 0
	for {
		n, err := syscall.Read(fd, data[len(data):cap(data)])
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return data, nil
		}
		if data = data[:len(data)+n]; len(data) > MaxFileSize {
			return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has %d bytes: the most is %d", max(st.Size, int64(len(data))), MaxFileSize)}
		}
		data = slices.Grow(data, 1)
	}
}

// openRetrying is open(2), with a descriptor that closes on exec.
func openRetrying(name string, flags int) (int, error) {
	for {
		fd, err := syscall.Open(name, flags|syscall.O_CLOEXEC, 0)
		if err == nil {
			return fd, nil
		}
		if err != syscall.EINTR {
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// readSome is Host.ReadSome for the running system. os.Open would start the
// runtime's poller, which a directory has no use for.
func readSome(dir string, n int) ([]fs.DirEntry, error) {
	fd, err := openRetrying(dir, syscall.O_RDONLY|syscall.O_DIRECTORY)
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
