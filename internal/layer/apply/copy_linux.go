package apply

import (
	"io"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
)

const newFile = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC

// file writes a regular file: as one more name of what the layer has, if that is asked for and possible, or as a
// copy.
func file(src, dst int, n *node, to string, link bool) error {
	from := path.Base(n.Path)
	fd, err := unix.Openat(src, from, readFile, 0)
	if err == unix.EACCES {
		return refusal("it can't be read: its mode is " + n.Type.Perm().String())
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != n.Size || st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return errNotAsSeen
	}
	var attrs map[string][]byte
	any, err := unix.Flistxattr(fd, nil)
	if err == nil && any > 0 {
		attrs, err = layer.AttributesAt(src, from)
	}
	if err != nil && err != unix.ENOTSUP {
		return err
	}
	if attrs["security.capability"] != nil {
		return errNotAsSeen
	}
	if link && onlyHere(fd) && (any == 0 || layer.Unmark(fd) == nil) {
		step("link")
		err = unix.Linkat(src, from, dst, to, 0)
		if err == nil {
			return nil
		}
	}
	return copied(fd, dst, to, &st, attrs)
}

// onlyHere reports whether no process has a file open for writing, such as one that got it from the command. The
// kernel grants a lease only then (fcntl(2)). It ends when the file is closed.
func onlyHere(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	return err == nil
}

// copied makes a new file from one that is open.
func copied(in, dst int, to string, want *unix.Stat_t, attrs map[string][]byte) error {
	step("create")
	out, err := unix.Openat(dst, to, newFile, want.Mode&0o777)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	step("copy")
	err = copyData(in, out, want)
	if err != nil {
		return err
	}
	return complete(out, want, attrs)
}

// complete gives something new its attributes, owner, mode and times.
func complete(fd int, want *unix.Stat_t, attrs map[string][]byte) error {
	err := setAttributes(fd, attrs)
	if err == unix.ENOTSUP {
		return refusal("it has attributes, and the file system there can't")
	}
	var have unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &have)
	}
	if err == nil && have.Mode&unix.S_IFMT != want.Mode&unix.S_IFMT {
		err = changed("something else appeared in the staging directory")
	}
	if err == nil && (have.Uid != want.Uid || have.Gid != want.Gid) {
		step("chown")
		err = unix.Fchownat(fd, "", int(want.Uid), int(want.Gid), unix.AT_EMPTY_PATH)
		if err == unix.EPERM {
			err = refusal("it belongs to another user or group")
		}
	}
	if err == nil && have.Mode != want.Mode {
		step("chmod")
		err = unix.Chmod(magic(fd), want.Mode&0o7777)
	}
	if err != nil {
		return err
	}
	return setTimes(fd, want.Atim, want.Mtim)
}

var buffer [128 << 10]byte

// copyData copies what a file has between its holes.
func copyData(in, out int, st *unix.Stat_t) error {
	sparse := st.Blocks*512 < st.Size
	if sparse {
		err := unix.Ftruncate(out, st.Size)
		if err != nil {
			return err
		}
	}
	for at := int64(0); at < st.Size; {
		if sparse {
			next, err := unix.Seek(in, at, unix.SEEK_DATA)
			if err == unix.ENXIO {
				return nil
			}
			if err != nil {
				return err
			}
			at = next
		}
		n, err := unix.Pread(in, buffer[:], at)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			n, err = unix.Pwrite(out, buffer[:n], at)
		}
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// special makes a symbolic link or a FIFO.
func (s *stager) special(src, dst int, n *node, to string) error {
	from := path.Base(n.Path)
	if !s.trees[n.Tree].inTree && n.Type.Type() == fs.ModeSymlink {
		step("link")
		err := unix.Linkat(src, from, dst, to, 0)
		if err == nil {
			return nil
		}
	}
	want, err := lstat(src, from)
	if err != nil {
		return err
	}
	step("make")
	switch want.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		var target string
		target, err = safepath.ReadLink(src, from)
		if err == nil {
			err = unix.Symlinkat(target, dst, to)
		}
	case unix.S_IFIFO:
		err = unix.Mknodat(dst, to, unix.S_IFIFO|0o600, 0)
	default:
		err = errNotAsSeen
	}
	if err != nil {
		return err
	}
	fd, err := unix.Openat(dst, to, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return complete(fd, &want, nil)
}
