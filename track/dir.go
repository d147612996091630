package track

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// sessionFile is the ending of a session's file, which the id precedes.
const sessionFile = ".session"

// opened is the open directory of a place.
type opened struct {
	fd   int
	path string
}

// open opens the directory of sessions and checks that it is the user's alone.
// With create it is made if missing; else the error is fs.ErrNotExist.
func (p place) open(create bool) (o opened, err error) {
	o.path = filepath.Join(p.parent, sessionsDir)
	follow := 0
	if p.nofollow {
		follow = unix.O_NOFOLLOW
	}
	parent, err := opened{fd: unix.AT_FDCWD}.openPrivate(p.parent, follow, unix.S_IFDIR, 0o022)
	if err == nil {
		o.fd, err = opened{fd: parent, path: p.parent}.openPrivate(sessionsDir, unix.O_NOFOLLOW, unix.S_IFDIR, 0o077)
		unix.Close(parent)
	}
	if !errors.Is(err, fs.ErrNotExist) || !create {
		return o, err
	}
	if _, err := os.Stat(cmp.Or(p.above, "/")); err != nil {
		return o, err
	}
	if err := os.MkdirAll(o.path, 0o700); err != nil {
		return o, err
	}
	return p.open(false)
}

// openPrivate opens what is of one type (inode(7)), the current user's, and has none of
// the permissions in not; else the error is errForeign. A FIFO does not block.
func (o opened) openPrivate(name string, flags int, kind, not uint32) (int, error) {
	path := filepath.Join(o.path, name)
	fd, err := unix.Openat(o.fd, name, flags|unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
		err = &os.PathError{Op: "fstat", Path: path, Err: err}
	case uint32(st.Mode)&unix.S_IFMT != kind:
		err = fmt.Errorf("%s: not a %s", path, map[uint32]string{unix.S_IFDIR: "directory", unix.S_IFREG: "regular file"}[kind])
	case int(st.Uid) != os.Geteuid():
		err = fmt.Errorf("%s: %w: it belongs to uid %d, you are uid %d", path, errForeign, st.Uid, os.Geteuid())
	case uint32(st.Mode)&not != 0:
		err = fmt.Errorf("%s: %w: mode %04o lets others in (chmod go-rwx)", path, errForeign, uint32(st.Mode)&0o7777)
	default:
		return fd, nil
	}
	unix.Close(fd)
	return -1, err
}

// foreign reports whether the place is somebody else's, who came first where
// everybody can write. No session of this user was ever stored there.
func (p place) foreign() bool {
	var st unix.Stat_t
	return p.nofollow && unix.Lstat(p.parent, &st) == nil && int(st.Uid) != os.Geteuid()
}

func (o opened) close() { unix.Close(o.fd) }

// create makes the file of a new session, which is locked for as long as it stays
// open here or in the keeper: the session is alive. Somebody who lists sessions may
// hold the lock for a moment. On a file system without locks the recorded pids alone
// must do.
func (o opened) create(id string) (*os.File, error) {
	path := filepath.Join(o.path, id+sessionFile)
	fd, err := unix.Openat(o.fd, id+sessionFile, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	for range 100 {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// remove removes the file of a session. It is no error if somebody else did so already,
// or does so at the same time.
func (o opened) remove(id string) error {
	err := os.Remove(filepath.Join(o.path, id+sessionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ids lists the sessions.
func (o opened) ids() ([]string, error) {
	fd, err := unix.Openat(o.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: o.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), o.path)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	ids := names[:0]
	for _, n := range names {
		if id, ok := strings.CutSuffix(n, sessionFile); ok && isID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// claim stores the record of a session that begins, with its name, unless a live
// session has that: the error is ErrNameTaken. Two that claim one take turns.
func (o opened) claim(f *os.File, r *Record) error {
	if err := unix.Flock(o.fd, unix.LOCK_EX); err != nil {
		return &os.PathError{Op: "flock", Path: o.path, Err: err}
	}
	defer func() { _ = unix.Flock(o.fd, unix.LOCK_UN) }()
	ids, err := o.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		other, err := o.load(id)
		if err != nil {
			continue
		}
		other.close()
		if id != r.ID && other.record.Name == r.Name && other.alive() {
			return fmt.Errorf("session name %q: %w %s", r.Name, ErrNameTaken, id)
		}
	}
	return writeRecord(f, r)
}

// alive reports whether the session still has a supervisor or keeper, or is a
// command that replaced both.
func (f *found) alive() bool {
	c := f.record.Command
	now, err := proc.Identify(c.Pid)
	return f.word.locked || f.record.Keeper.IsZero() && err == nil && now == c && !c.IsZero()
}
