package track

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
)

const (
	recordFile = ".record" // a Record
	stateFile  = ".state"  // a fork.KeeperState
	newFile    = ".new"    // the record while it is written
)

// sessionFiles are the endings of all files that a session may have, in the
// order in which they are removed: as long as its state is there, so is it.
func sessionFiles() []string { return []string{newFile, recordFile, stateFile} }

// opened is the open directory of a place.
type opened struct {
	fd   int
	path string
}

// open opens the directory of sessions and checks that it is the user's alone.
// With create it is made if missing; else the error is fs.ErrNotExist.
func (p place) open(create bool) (opened, error) {
	o := opened{fd: -1, path: filepath.Join(p.parent, sessionsDir)}
	flags := 0
	if p.nofollow {
		flags = unix.O_NOFOLLOW
	}
	parent, err := openDir(unix.AT_FDCWD, p.parent, p.parent, flags, 0o022, create, func() error {
		if p.above != "" {
			if _, err := os.Stat(p.above); err != nil {
				return err
			}
		}
		return os.MkdirAll(p.parent, 0o700)
	})
	if err != nil {
		return o, err
	}
	defer unix.Close(parent)
	o.fd, err = openDir(parent, sessionsDir, o.path, unix.O_NOFOLLOW, 0o077, create, func() error { return unix.Mkdirat(parent, sessionsDir, 0o700) })
	return o, err
}

// openDir opens a directory of the user's with none of the permissions in not, and
// makes it if it is missing and to be created.
func openDir(at int, name, path string, flags int, not uint32, create bool, make func() error) (int, error) {
	flags |= unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if errors.Is(err, unix.ENOENT) && create {
		if err = make(); err == nil || errors.Is(err, unix.EEXIST) {
			fd, err = unix.Openat(at, name, flags, 0)
		}
	}
	if pe := (*os.PathError)(nil); err != nil && !errors.As(err, &pe) {
		err = &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err != nil {
		return -1, err
	}
	if err := private(fd, path, not); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// foreign reports whether the place is somebody else's, who came first where
// everybody can write. No session of this user was ever stored there.
func (p place) foreign() bool {
	var st unix.Stat_t
	return p.nofollow && unix.Lstat(p.parent, &st) == nil && int(st.Uid) != os.Geteuid()
}

// private checks that fd is a directory or file of the current user with none
// of the permissions in not. The error is errForeign.
func private(fd int, path string, not uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w: it belongs to uid %d, you are uid %d", path, errForeign, st.Uid, os.Geteuid())
	}
	if uint32(st.Mode)&not != 0 {
		return fmt.Errorf("%s: %w: mode %04o lets others in (chmod go-rwx)", path, errForeign, uint32(st.Mode)&0o7777)
	}
	return nil
}

func (o opened) close() { unix.Close(o.fd) }

// ids lists the sessions: whatever has a file here, be it the only one left.
func (o opened) ids() ([]string, error) {
	names, err := o.names()
	ids := names[:0]
	for _, n := range names {
		id, ext, _ := strings.Cut(n, ".")
		if slices.Contains(sessionFiles(), "."+ext) && isID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// names lists all that is in the directory.
func (o opened) names() ([]string, error) {
	f, err := o.again()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// again opens the directory another time, to be read or locked.
func (o opened) again() (*os.File, error) {
	fd, err := unix.Openat(o.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: o.path, Err: err}
	}
	return os.NewFile(uintptr(fd), o.path), nil
}

// has reports whether a session has any file here.
func (o opened) has(id string) bool {
	var st unix.Stat_t
	return slices.ContainsFunc(sessionFiles(), func(ext string) bool {
		return unix.Fstatat(o.fd, id+ext, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	})
}

// A name is a symbolic link to the id: making one is atomic, and looking one
// up reads no records.

func nameLink(name string) string { return "@" + name }

// claimName gives name to session id. The error is ErrNameTaken if a live session
// has it.
func (o opened) claimName(name, id string) (err error) {
	for range 10 {
		if err = unix.Symlinkat(id, o.fd, nameLink(name)); err == nil {
			return nil
		}
		if errors.Is(err, unix.EEXIST) {
			if err := o.freeName(name); err != nil {
				return err
			}
		}
	}
	return &os.PathError{Op: "symlink", Path: filepath.Join(o.path, nameLink(name)), Err: err}
}

// freeName removes the link of a session that is no more. Two that do so at
// once must not remove each other's new link: hence the lock.
func (o opened) freeName(name string) error {
	lock, err := o.again()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return &os.PathError{Op: "flock", Path: o.path, Err: err}
	}
	holder, err := o.lookupName(name)
	if errors.Is(err, unix.ENOENT) {
		return nil // gone meanwhile
	}
	if err == nil && o.alive(holder) {
		return fmt.Errorf("session name %q: %w %s", name, ErrNameTaken, holder)
	}
	return o.removeEntry(nameLink(name)) // what is no link to an id is no session's
}

// lookupName gives the id that name points to.
func (o opened) lookupName(name string) (string, error) {
	var b [64]byte
	n, err := unix.Readlinkat(o.fd, nameLink(name), b[:])
	if err != nil {
		return "", err
	}
	if id := string(b[:n]); isID(id) {
		return id, nil
	}
	return "", fmt.Errorf("session name %q: %w", name, ErrNotFound)
}

// dropName removes name if it still points to id.
func (o opened) dropName(name, id string) {
	if holder, err := o.lookupName(name); err == nil && holder == id {
		_ = unix.Unlinkat(o.fd, nameLink(name), 0)
	}
}

// dropNamesOf removes all names of a session whose record does not tell.
func (o opened) dropNamesOf(id string) {
	all, _ := o.names()
	for _, n := range all {
		if name, ok := strings.CutPrefix(n, "@"); ok {
			o.dropName(name, id)
		}
	}
}

// alive reports whether session id still has a supervisor or keeper, or is a
// command that replaced both.
func (o opened) alive(id string) bool {
	f, err := o.load(id)
	if err != nil {
		return false
	}
	defer f.close()
	now, err := proc.Identify(f.record.Command.Pid)
	return f.word.locked || f.record.Keeper.IsZero() && err == nil && now == f.record.Command && !now.IsZero()
}
