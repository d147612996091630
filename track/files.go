package track

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/object"
)

// sessionDir is where the files of one session are. They lie beside those of
// the others, named by the id: to remove a directory for each would take ext4
// ten times as long as all the rest.
type sessionDir struct {
	id   string
	in   opened // owned by the one that create made
	path string // the files' common prefix
}

func (o opened) session(id string) *sessionDir {
	return &sessionDir{id: id, in: o, path: filepath.Join(o.path, id)}
}

// create begins a new session with its locked state file. The sessionDir owns
// o from then on.
func (o opened) create(id string) (*sessionDir, *os.File, error) {
	d := o.session(id)
	fd, err := unix.Openat(o.fd, id+stateFile, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, nil, &os.PathError{Op: "create", Path: d.path + stateFile, Err: err}
	}
	lockState(fd)
	return d, os.NewFile(uintptr(fd), d.path+stateFile), nil
}

// lockState marks the session as alive for as long as the file stays open here
// or in the keeper. Somebody who lists sessions may hold the lock for a moment.
// On a file system without locks the recorded pids alone must do.
func lockState(fd int) {
	for range 100 {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// writeRecord stores what the session is: aside, and renamed into place, so that
// nobody ever reads half of it. It is not synced: a machine that stops takes the
// session's processes with it, so the start need not wait for a disk.
func (d *sessionDir) writeRecord(r *Record) error {
	b := object.Of(r)
	fd, err := unix.Openat(d.in.fd, d.id+newFile, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: d.path + newFile, Err: err}
	}
	n, err := unix.Write(fd, b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat(d.in.fd, d.id+newFile, d.in.fd, d.id+recordFile)
	}
	if err != nil {
		_ = unix.Unlinkat(d.in.fd, d.id+newFile, 0)
		return &os.PathError{Op: "write", Path: d.path + recordFile, Err: err}
	}
	return nil
}

// readRecord reads what the session is; fs.ErrNotExist if it was not stored yet.
func (d *sessionDir) readRecord() (r Record, err error) {
	f, err := d.openFile(recordFile)
	if err != nil {
		return r, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	switch {
	case err != nil:
		return r, err
	case len(b) > maxRecord:
		return r, &os.PathError{Op: "read", Path: f.Name(), Err: unix.EFBIG}
	}
	if r, err = parseRecord(b, d.id); err != nil {
		err = fmt.Errorf("%s: %w", f.Name(), err)
	}
	return r, err
}

// openFile opens a file of the session for reading. A FIFO that somebody put
// there does not block, and is refused like anything but a regular file of the
// user's own.
func (d *sessionDir) openFile(ext string) (*os.File, error) {
	path := d.path + ext
	fd, err := unix.Openat(d.in.fd, d.id+ext, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	var st unix.Stat_t
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err == nil {
		err = private(fd, path, 0o022)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// remove deletes the session's files and its name, the state file last. It is
// no error if somebody else did so already, or does so at the same time.
func (d *sessionDir) remove(name string) error {
	if name != "" {
		d.in.dropName(name, d.id)
	}
	for _, ext := range sessionFiles() {
		if err := d.in.removeEntry(d.id + ext); err != nil {
			return err
		}
	}
	return nil
}

// removeEntry removes a file, or an empty directory that somebody put in its
// place.
func (o opened) removeEntry(name string) error {
	err := unix.Unlinkat(o.fd, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // the second is what POSIX says for a directory
		if derr := unix.Unlinkat(o.fd, name, unix.AT_REMOVEDIR); !errors.Is(derr, unix.ENOTDIR) {
			err = derr
		}
	}
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "remove", Path: filepath.Join(o.path, name), Err: err}
}
