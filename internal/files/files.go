// Package files looks at files with as few system calls as possible. It follows symbolic
// links as the kernel does, and decides nothing.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"syscall"
)

// Stat is a part of the result of lstat(2).
type Stat struct {
	Mode  fs.FileMode
	ID    ID
	Nlink uint64 // how many names the inode has (st_nlink, inode(7)); 0 if unknown
	UID   uint32 // the owner
}

// ID identifies an inode while the machine runs.
type ID struct{ Dev, Ino uint64 }

// Plain strips the path from an error, for a message that already has the path.
func Plain(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Lstat is os.Lstat without what a policy does not need. Before the command starts, a
// policy looks at some hundred files.
func Lstat(name string) (Stat, error) {
	var st syscall.Stat_t
	for {
		err := syscall.Lstat(name, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return Stat{}, err
		}
		return Stat{Mode(uint32(st.Mode)), ID{uint64(st.Dev), st.Ino}, uint64(st.Nlink), st.Uid}, nil
	}
}

// kinds are the types of files by the upper four bits of st_mode (inode(7)).
var kinds = [16]fs.FileMode{
	fs.ModeIrregular, fs.ModeNamedPipe, fs.ModeDevice | fs.ModeCharDevice, fs.ModeIrregular,
	fs.ModeDir, fs.ModeIrregular, fs.ModeDevice, fs.ModeIrregular,
	0, fs.ModeIrregular, fs.ModeSymlink, fs.ModeIrregular,
	fs.ModeSocket, fs.ModeIrregular, fs.ModeIrregular, fs.ModeIrregular,
}

// Mode translates st_mode.
func Mode(m uint32) fs.FileMode { return fs.FileMode(m&0o777) | kinds[m>>12&0xf] }

// Read reads a regular file of at most limit bytes, which may be a stranger's. It does not
// block on a FIFO, and does nothing to a device but open it. It is os.ReadFile without
// what a few kilobytes don't need: a start reads some such files.
func Read(name string, limit int64) ([]byte, error) {
	fd, err := open(name, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "fstat", Path: name, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a regular file")}
	}
	data, err := readAll(fd, name, make([]byte, 0, max(4096, min(st.Size, limit)+1)), limit) // in /proc the size is 0
	if err == nil && int64(len(data)) > limit {
		size := max(st.Size, int64(len(data)))
		err = fmt.Errorf("it has %d bytes: the most is %d", size, limit)
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, err
}

// MayHave reports whether found returns true for a piece of a regular file. Pieces overlap
// by overlap bytes. It also returns true if the file can't be read, or has more than *left
// bytes. Reading a big file like this takes a third of the time that Read takes. Bigger
// pieces cost more in page faults than they save.
func MayHave(name string, left *int, overlap int, found func(piece []byte) bool) bool {
	fd, err := open(name, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY)
	if err != nil {
		return true
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return true
	}
	const piece = 16 << 10
	b := make([]byte, 0, min(max(st.Size, 0), piece)+int64(overlap)+1)
	for *left >= 0 {
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return true
		case n == 0:
			return false
		}
		b = b[:len(b)+n]
		if found(b) {
			return true
		}
		*left -= n
		b = append(b[:0], b[max(0, len(b)-overlap):]...)
	}
	return true
}

// ReadInto reads a file of any kind into b, or into a bigger slice if that is too small.
// For most files that takes four system calls.
func ReadInto(name string, b []byte) ([]byte, error) {
	fd, err := open(name, syscall.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	return readAll(fd, name, b[:0], math.MaxInt64)
}

// readAll appends the content of a file to b, up to its end or to more than limit bytes.
func readAll(fd int, name string, b []byte, limit int64) ([]byte, error) {
	for {
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return b, nil
		}
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return b, nil
		}
		b = slices.Grow(b, 1)
	}
}

// open is open(2), with a descriptor that closes on exec.
func open(name string, flags int) (int, error) {
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
