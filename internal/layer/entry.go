package layer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/safepath"
)

// entry is what a directory has by a name, looked at without following a link.
type entry struct {
	dir  *os.File
	name string
	mode fs.FileMode
	st   unix.Stat_t
}

// look returns an entry of a directory, nil if there is none. A directory that is nil has none.
func look(dir *os.File, name string) (*entry, error) {
	if dir == nil {
		return nil, nil
	}
	e := &entry{dir: dir, name: name}
	err := unix.Fstatat(int(dir.Fd()), name, &e.st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	e.mode = files.Mode(uint32(e.st.Mode))
	for i, set := range []fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid} { // which files.Mode leaves out
		if e.st.Mode&(unix.S_ISVTX<<i) != 0 {
			e.mode |= set
		}
	}
	return e, nil
}

func (e *entry) isDir() bool { return e != nil && e.mode.IsDir() }

// whiteout reports whether the kernel made this in a layer for something that was removed. A command can't.
func (e *entry) whiteout() bool { return e.mode&fs.ModeCharDevice != 0 && e.st.Rdev == 0 }

// list opens a directory.
func (e *entry) list() (*os.File, error) {
	return safepath.OpenBelow(e.dir, e.name, os.O_RDONLY|unix.O_DIRECTORY)
}

// open opens a regular file. It does not wait if that is a FIFO by now.
func (e *entry) open() (*os.File, error) {
	f, err := safepath.OpenBelow(e.dir, e.name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	if err == nil && (st.Ino != e.st.Ino || st.Mode&unix.S_IFMT != unix.S_IFREG) {
		err = fs.ErrNotExist // exchanged in between
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// link returns where a symbolic link leads.
func (e *entry) link() (string, error) { return safepath.ReadLink(int(e.dir.Fd()), e.name) }

// sum returns the SHA-256 of a file's content, or of where a link leads.
func (e *entry) sum() (string, error) {
	h := sha256.New()
	if e.mode&fs.ModeSymlink != 0 {
		to, err := e.link()
		_, _ = io.WriteString(h, to)
		return hex.EncodeToString(h.Sum(nil)), err
	}
	f, err := e.open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

func (e *entry) state() *State {
	return &State{
		Mode: e.mode, Size: e.st.Size, UID: e.st.Uid, GID: e.st.Gid,
		Inode: e.st.Ino, Links: uint64(e.st.Nlink),
		Modified: e.st.Mtim.Nano(), Changed: e.st.Ctim.Nano(),
	}
}

// attributes are the extended attributes of an entry.
type attributes struct {
	own     map[string][]byte
	origin  bool   // the kernel copied it from the lower directory: a command made what has none
	opaque  bool   // the kernel hides what a lower directory has
	strange string // the name of one that only the kernel should make, and did not
}

// capabilityAttribute gives a program rights that whoever starts it need not have.
const capabilityAttribute = "security.capability"

// attributes returns the extended attributes, none if they are closed to the user.
func (e *entry) attributes() (attributes, error) {
	a, err := attributesAt(int(e.dir.Fd()), e.name)
	if errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return a, err
}

// same reports whether a tree has what the layer has, by any number of names. Of directories the times do not
// count, and not what is in them.
func same(upper, lower *entry) (bool, error) {
	u := &upper.st
	l := &lower.st
	if upper.mode != lower.mode || u.Uid != l.Uid || u.Gid != l.Gid {
		return false, nil
	}
	if !upper.isDir() && (u.Size != l.Size || u.Mtim != l.Mtim) {
		return false, nil
	}
	x, err := AttributesAt(int(upper.dir.Fd()), upper.name)
	if err != nil {
		return false, err
	}
	y, err := AttributesAt(int(lower.dir.Fd()), lower.name)
	if err != nil || !maps.EqualFunc(x, y, bytes.Equal) {
		return false, err
	}
	switch {
	case upper.mode.IsRegular():
		return sameContent(upper, lower)
	case upper.mode&fs.ModeSymlink != 0:
		x, err1 := upper.link()
		y, err2 := lower.link()
		return x == y, errors.Join(err1, err2)
	}
	return true, nil
}

func sameContent(upper, lower *entry) (bool, error) {
	if upper.st.Size == 0 {
		return true, nil
	}
	x, err := upper.open()
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := lower.open()
	if err != nil {
		return false, err
	}
	defer y.Close()
	const piece = 128 << 10
	size := min(upper.st.Size+1, piece)
	b := make([]byte, size)
	c := make([]byte, size)
	for {
		n, err := io.ReadFull(x, b)
		m, _ := io.ReadFull(y, c)
		if n != m || !bytes.Equal(b[:n], c[:m]) {
			return false, nil
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return true, nil
		default:
			return false, err
		}
	}
}
