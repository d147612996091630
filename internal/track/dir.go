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

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// storeDir is where a store may keep sessions.
type storeDir struct {
	parent   string // the directory that "sessions" is in
	above    string // a directory above parent that is never made, or ""
	nofollow bool   // others can write to the directory above parent
}

// SessionsDir is the directory of a store's sessions, in each of Store.Parents.
const SessionsDir = "sessions"

const (
	sessionFile = ".session" // a session's file is named ID.session
)

func (p storeDir) dir() string { return filepath.Join(p.parent, SessionsDir) }

func (p storeDir) file(id string) string { return filepath.Join(p.dir(), id+sessionFile) }

// check checks that the directory of sessions belongs to the user alone. If it is missing,
// check makes it if create is set, or else returns fs.ErrNotExist.
func (p storeDir) check(create bool) error {
	stat := unix.Stat
	if p.nofollow {
		stat = unix.Lstat
	}
	err := directory(p.parent, stat, 0o022)
	if err == nil {
		err = directory(p.dir(), unix.Lstat, 0o077)
	}
	if !errors.Is(err, fs.ErrNotExist) || !create {
		return err
	}
	if _, err := os.Stat(cmp.Or(p.above, "/")); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return err
	}
	return p.check(false)
}

// directory returns an error for a path that is no directory or is not private.
func directory(path string, stat func(string, *unix.Stat_t) error, not uint32) error {
	var st unix.Stat_t
	err := stat(path, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err != nil {
		return closedBy(path, &os.PathError{Op: "open", Path: path, Err: err})
	}
	return private(path, &st, not)
}

// closedBy adds errOthers to an error if a directory above the path is closed that is another user's.
func closedBy(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	var st unix.Stat_t
	dir := filepath.Dir(path)
	for dir != "/" && unix.Stat(dir, &st) != nil {
		dir = filepath.Dir(dir)
	}
	if dir == "/" || int(st.Uid) == os.Geteuid() {
		return err
	}
	return fmt.Errorf("%w, uid %d: %w", errOthers, st.Uid, err)
}

// private returns errForeign for a file that is another user's (then errOthers, too) or that
// has one of the permissions in not.
func private(path string, st *unix.Stat_t, not uint32) error {
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w: %w, uid %d, and you are uid %d", path, errForeign, errOthers, st.Uid, os.Geteuid())
	}
	mode := uint32(st.Mode)
	if mode&not != 0 {
		return fmt.Errorf("%s: %w: mode %04o lets others in (chmod go-rwx)", path, errForeign, mode&0o7777)
	}
	return nil
}

// create makes the file of a new session. It stays locked as long as it is open here or in the
// keeper, which shows that the session is alive. A process that lists sessions may have the
// lock for a moment. On a file system without locks only the recorded pids show it.
func (p storeDir) create(id string) (*os.File, error) {
	fd, err := unix.Open(p.file(id), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: p.file(id), Err: err}
	}
	for range 100 {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return os.NewFile(uintptr(fd), p.file(id)), nil
}

// open opens the file of a session. It refuses one that is not regular or does not belong to
// the user alone. It does not block on a FIFO.
func (p storeDir) open(id string) (*os.File, error) {
	path := p.file(id)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err == nil {
		err = private(path, &st, 0o022)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	_ = unix.SetNonblock(fd, false) // else Go's runtime adds it to epoll(7), whose limit may be reached
	return os.NewFile(uintptr(fd), path), nil
}

// names returns the names of all files, in any order: hundreds may be left by --exec, and each
// start looks for notes among them.
func (p storeDir) names() (all []string, err error) {
	entries, err := files.List(p.dir(), -1)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}

func (p storeDir) ids() ([]string, error) {
	names, err := p.names()
	return sessionIDs(names), err
}

// sessionIDs returns the ids of the sessions among the names of files, sorted.
func sessionIDs(names []string) (ids []string) {
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, sessionFile); ok && isID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// claim stores the record of a new session with its name. It returns ErrNameTaken if a live
// session has the name. A lock serializes claims.
func (p storeDir) claim(f *os.File, r *Record) error {
	fd, err := unix.Open(p.dir(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Flock(fd, unix.LOCK_EX)
	}
	if err != nil {
		return &os.PathError{Op: "flock", Path: p.dir(), Err: err}
	}
	ids, err := p.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		other, err := p.load(id)
		if err == nil {
			other.close()
		}
		if err != nil || id == r.ID || other.record.Name != r.Name {
			continue
		}
		if other.locked || other.alone() {
			return fmt.Errorf("session name %q: %w %s", r.Name, ErrNameTaken, id)
		}
	}
	return writeRecord(f, r)
}

// alone reports whether the command lives and has replaced its supervisor, so that nobody
// has the lock.
func (f *found) alone() bool {
	c := f.record.Command
	if c.IsZero() || !f.record.Keeper.IsZero() {
		return false
	}
	now, err := proc.Identify(c.Pid)
	return err == nil && now == c
}
