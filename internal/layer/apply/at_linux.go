package apply

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
)

const (
	anyDir   = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	readDir  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	readFile = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC
	newFile  = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	anyFile  = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// magic is the path of an open file of any kind. It leads to that file only.
func magic(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// lstat is lstat(2) of a name in a directory.
func lstat(dir int, name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func isDir(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// opened opens directories below one, and keeps the last one open: the next change is often in the same.
type opened struct {
	fd   int
	last int // -1 if none is open
	path string
}

// above opens the directory that a path is in, and returns the last name in the path.
func (o *opened) above(rel string) (fd int, name string, err error) {
	dir := path.Dir(rel)
	if o.last < 0 || o.path != dir {
		if o.last >= 0 {
			unix.Close(o.last)
		}
		o.last, err = safepath.OpenAt(o.fd, dir, anyDir)
		o.path = dir
	}
	return o.last, path.Base(rel), err
}

// add adds what stat(2) says of an entry. Of a directory that is no more than its inode: what is in it is added itself.
func (m *mark) add(rel string, st *unix.Stat_t) {
	mode := st.Mode
	size := st.Size
	when := st.Mtim.Nano()
	if isDir(st) {
		mode &= unix.S_IFMT
		size = 0
		when = 0
	}
	b := make([]byte, 0, 256)
	for _, n := range []uint64{st.Ino, uint64(mode), uint64(st.Uid)<<32 | uint64(st.Gid), uint64(size), uint64(when)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(append(b, rel...))
	for i := range m.Sum {
		m.Sum[i] ^= binary.LittleEndian.Uint64(sum[8*i:])
	}
}

// walk calls f for an entry of a directory and for all below it. It reports EXDEV for another file system.
func walk(dir int, name, rel string, f func(rel string, dir int, name string, st *unix.Stat_t) error) error {
	st, err := lstat(dir, name)
	if err != nil {
		return err
	}
	err = f(rel, dir, name, &st)
	if err != nil || !isDir(&st) {
		return err
	}
	in, err := openList(dir, name)
	if err != nil {
		return err
	}
	defer in.Close()
	fd := int(in.Fd())
	var now unix.Stat_t
	err = unix.Fstat(fd, &now)
	if err == nil && (now.Ino != st.Ino || now.Dev != st.Dev) {
		err = unix.EXDEV
	}
	if err != nil {
		return err
	}
	names, err := in.Readdirnames(-1)
	for i := 0; err == nil && i < len(names); i++ {
		err = walk(fd, names[i], path.Join(rel, names[i]), f)
	}
	return err
}

// openList opens a directory for reading.
func openList(dir int, name string) (*os.File, error) {
	fd, err := safepath.OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// markOf says how an entry and all below it look now.
func markOf(dir int, name string) (m mark, err error) {
	var dev uint64
	err = walk(dir, name, ".", func(rel string, _ int, _ string, st *unix.Stat_t) error {
		if rel == "." {
			m.Ino = st.Ino
			dev = st.Dev
		}
		if st.Dev != dev {
			return unix.EXDEV
		}
		m.add(rel, st)
		return nil
	})
	return m, err
}

// seal is markOf with status change times, which nobody can set (inode(7)), in place of the others. Of a file with
// more than one name it has the content instead, if that can be read: a rename of one name changes that time.
func seal(dir int, name string) (*mark, error) {
	var m mark
	err := walk(dir, name, ".", func(rel string, dir int, name string, st *unix.Stat_t) error {
		st.Mtim = st.Ctim
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 {
			sum, err := content(dir, name)
			if err == nil {
				st.Mtim = unix.Timespec{}
				rel += "/" + sum
			}
		}
		m.add(rel, st)
		return nil
	})
	return &m, err
}

// content returns the SHA-256 of a regular file's content.
func content(dir int, name string) (string, error) {
	fd, err := unix.Openat(dir, name, readFile, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return string(h.Sum(nil)), err
}

// unchanged reports whether an entry still is what a layer saw.
func unchanged(dir int, name string, st *unix.Stat_t, was *layer.State) bool {
	if was == nil || st.Ino == was.Inode && st.Ctim.Nano() == was.Changed {
		return was != nil
	}
	fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return false
	}
	in := os.NewFile(uintptr(fd), name)
	defer in.Close()
	return was.Unchanged(in, name)
}

func readlink(dir int, name string) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, b)
	return string(b[:max(n, 0)]), err
}

// attributes returns the extended attributes of an entry that belong to its content, without the overlay's.
func attributes(dir int, name string) (map[string][]byte, error) {
	own, err := layer.AttributesAt(dir, name)
	all := make(map[string][]byte)
	for attr, value := range own {
		all[attr] = []byte(value)
	}
	return all, err
}

// setAttributes gives an open file attributes. Access control lists that the file system does not know are left out.
func setAttributes(fd int, want map[string][]byte) error {
	for attr, value := range want {
		step("set attribute")
		err := unix.Setxattr(magic(fd), attr, value, 0)
		if err != nil && (!strings.HasPrefix(attr, "system.") || err != unix.ENOTSUP && err != unix.EPERM) {
			return err
		}
	}
	return nil
}

// removeAttributes takes those attributes of an open directory away that it is not to have.
func removeAttributes(fd int, want map[string][]byte) error {
	have, err := attributes(fd, ".")
	for attr := range have {
		_, is := want[attr]
		if err == nil && !is {
			err = unix.Removexattr(magic(fd), attr)
		}
	}
	return err
}

func lookOf(st *unix.Stat_t) *look {
	return &look{Mode: st.Mode & 0o7777, Atime: st.Atim.Nano(), Mtime: st.Mtim.Nano()}
}

// lookAt says how an open directory looks.
func lookAt(fd int) (*look, uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return lookOf(&st), st.Ino, err
}

// set makes an open directory look like that.
func (l *look) set(fd int) error {
	if l.Attrs != nil {
		step("set attributes of directory")
		err := errors.Join(removeAttributes(fd, l.Attrs), setAttributes(fd, l.Attrs))
		if err != nil {
			return err
		}
	}
	step("set mode of directory")
	err := unix.Chmod(magic(fd), l.Mode)
	if err != nil || l.Mtime == asIs {
		return err
	}
	step("set times of directory")
	times := []unix.Timespec{unix.NsecToTimespec(l.Atime), unix.NsecToTimespec(l.Mtime)}
	return unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
}

// removeAll removes an entry of a directory and all below it, and opens what is closed there.
func removeAll(dir int, name string) error {
	step("unlink")
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	fd, err := unix.Openat(dir, name, anyDir, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if os.Geteuid() != 0 {
		err = unix.Chmod(magic(fd), 0o700)
	}
	if err != nil {
		return err
	}
	in, err := openList(dir, name)
	if err != nil {
		return err
	}
	defer in.Close()
	names, err := in.Readdirnames(-1)
	for i := 0; err == nil && i < len(names); i++ {
		err = removeAll(int(in.Fd()), names[i])
	}
	if err == nil {
		step("rmdir")
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	}
	return err
}
