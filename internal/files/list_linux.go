package files

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// List lists the first n entries of a directory, or all of them if n is -1. It is
// os.File.ReadDir without allocations for each entry.
func List(dir string, n int) (out []fs.DirEntry, err error) {
	fd, err := open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	var small [2048]byte // enough for most directories
	b := small[:]
	for pieces := 1; n < 0 || len(out) < n; pieces++ {
		got, err := syscall.ReadDirent(fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return out, &fs.PathError{Op: "readdirent", Path: dir, Err: err}
		}
		if got == 0 {
			return out, nil
		}
		found, err := parseDirents(&dir, b[:got])
		if err != nil {
			return out, err
		}
		out = slices.Grow(out, len(found))
		for i := range found {
			out = append(out, &found[i])
		}
		if n < 0 && pieces == 3 {
			b = make([]byte, 16*len(small))
		}
	}
	return out[:n], nil // n is not negative here
}

// parseDirents parses what getdents64(2) returned. All names share one string.
func parseDirents(dir *string, dirents []byte) ([]entry, error) {
	const lengthAt, kindAt, nameAt, least = 16, 18, 19, 24
	out := make([]entry, 0, len(dirents)/least)
	names := string(dirents)
	for at, next := 0, 0; at+least <= len(dirents); at = next {
		next = at + int(binary.NativeEndian.Uint16(dirents[at+lengthAt:]))
		name, _, _ := strings.Cut(names[at+nameAt:next], "\x00")
		kind := uint32(dirents[at+kindAt]) << 12 // S_IFMT's bits, as DTTOIF of <dirent.h> has it
		if name == "." || name == ".." {
			continue
		}
		e := entry{dir, name, Mode(kind)}
		if kind == syscall.DT_UNKNOWN {
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			e.kind = info.Mode().Type()
		}
		out = append(out, e)
	}
	return out, nil
}

// CountsDirs reports whether the file system of a directory counts the directories in it: it has
// two links more than that (find(1), -noleaf). In others, such as btrfs or overlayfs, the number
// of links says nothing.
func CountsDirs(dir string) bool {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return false
	}
	const ext4, xfs, tmpfs = 0xef53, 0x58465342, 0x1021994 // statfs(2)
	switch uint32(fs.Type) {
	case ext4, xfs, tmpfs:
		return true
	}
	return false
}

type entry struct {
	dir  *string
	name string
	kind fs.FileMode
}

func (e *entry) Name() string               { return e.name }
func (e *entry) IsDir() bool                { return e.kind.IsDir() }
func (e *entry) Type() fs.FileMode          { return e.kind }
func (e *entry) Info() (fs.FileInfo, error) { return os.Lstat(*e.dir + "/" + e.name) }
