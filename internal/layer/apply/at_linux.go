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
	readFile = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// dirPerm is what the owner of a directory needs to make and remove files in it.
const dirPerm = 0o300

// The reasons that the kernel gives.
var (
	errGone    = changed("it has gone")
	errChanged = changed("it has changed")
	errThere   = changed("there is something by now")
)

// reasonOf says what an error of a system call means if others may have changed the tree meanwhile.
func reasonOf(err error) error {
	errno, is := errors.AsType[unix.Errno](err)
	if !is {
		return err
	}
	switch errno {
	case unix.ENOENT:
		return errGone
	case unix.EEXIST:
		return errThere
	case unix.ELOOP, unix.ENOTDIR, unix.EXDEV:
		return changed("a directory above it is a link, another mount or no directory by now")
	case unix.EACCES, unix.EPERM, unix.EROFS, unix.EBUSY:
		return refusal(errno.Error())
	}
	return err
}

// magic is the path of an open file of any kind. It leads to that file only.
func magic(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func closeFD(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}

// lstat is lstat(2) of a name in a directory.
func lstat(dir int, name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// inodeAt returns the inode of a name in a directory, 0 if there is none.
func inodeAt(dir int, name string) (uint64, error) {
	st, err := lstat(dir, name)
	if err == unix.ENOENT {
		return 0, nil
	}
	return st.Ino, err
}

func isDir(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// opened opens directories below one, and keeps the last one open: the next change is often in the same.
type opened struct {
	top  *os.File // nil if it can't be opened
	last int      // -1 if none is open
	path string
}

func (o *opened) fd() int { return int(o.top.Fd()) } // -1 if it can't be opened

func (o *opened) close() {
	o.top.Close() // also if it is nil
	closeFD(o.last)
}

// above opens the directory that a path is in, and returns the last name in the path.
func (o *opened) above(rel string) (fd int, name string, err error) {
	dir := path.Dir(rel)
	if o.last < 0 || o.path != dir {
		closeFD(o.last)
		o.last, err = safepath.OpenAt(o.fd(), dir, anyDir)
		o.path = dir
	}
	return o.last, path.Base(rel), err
}

// add adds what stat(2) says of an entry. Of a directory that is no more than its inode and owner: what is in it is
// added itself.
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

// visitor is called with an entry, and where it is below the first one, which is ".".
type visitor func(rel string, dir int, name string, st *unix.Stat_t) error

// walk calls f for an entry of a directory and for all below it. It reports EXDEV for another file system than dev,
// which is 0 for that of the first.
func walk(dir int, name, rel string, dev uint64, f visitor) error {
	st, err := lstat(dir, name)
	if err == nil && dev != 0 && st.Dev != dev {
		err = unix.EXDEV
	}
	if err == nil {
		err = f(rel, dir, name, &st)
	}
	if err != nil || !isDir(&st) {
		return err
	}
	fd, err := safepath.OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(fd), name)
	defer in.Close()
	now, err := inodeAt(fd, ".")
	if err == nil && now != st.Ino {
		err = unix.EXDEV
	}
	if err != nil {
		return err
	}
	names, err := in.Readdirnames(-1)
	for i := 0; err == nil && i < len(names); i++ {
		err = walk(fd, names[i], path.Join(rel, names[i]), st.Dev, f)
	}
	return err
}

// markOf says how an entry and all below it look now.
func markOf(dir int, name string) (m mark, err error) {
	err = walk(dir, name, ".", 0, func(rel string, _ int, _ string, st *unix.Stat_t) error {
		if rel == "." {
			m.Ino = st.Ino
		}
		m.add(rel, st)
		return nil
	})
	return m, err
}

// seal is markOf with status change times, which nobody can set (inode(7)), in place of the others. With contents, a
// file with more than one name has its content instead, if that can be read: a rename of one name changes that time.
func seal(dir int, name string, contents bool) (m mark, err error) {
	err = walk(dir, name, ".", 0, func(rel string, dir int, name string, st *unix.Stat_t) error {
		st.Mtim = st.Ctim
		if contents && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 {
			sum, err := content(dir, name)
			if err == nil {
				st.Mtim = unix.Timespec{}
				rel += "/" + sum
			}
		}
		m.add(rel, st)
		return nil
	})
	return m, err
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
	if was == nil {
		return false
	}
	if st.Ino == was.Inode && st.Ctim.Nano() == was.Changed {
		return true
	}
	fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return false
	}
	in := os.NewFile(uintptr(fd), name)
	defer in.Close()
	return was.Unchanged(in, name)
}

// attributesOf returns the extended attributes of an open file that belong to its content.
func attributesOf(fd int) (map[string][]byte, error) {
	all, err := layer.AttributesAt(fd, ".")
	if all == nil {
		all = make(map[string][]byte)
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
	have, err := attributesOf(fd)
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
	return setTimes(fd, unix.NsecToTimespec(l.Atime), unix.NsecToTimespec(l.Mtime))
}

func setTimes(fd int, accessed, modified unix.Timespec) error {
	step("set times")
	return unix.UtimesNanoAt(fd, "", []unix.Timespec{accessed, modified}, unix.AT_EMPTY_PATH)
}
