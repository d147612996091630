//go:build unix

package track

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	recordFile = ".record" // a Record
	holderFile = ".holder" // a Holder
	stateFile  = ".state"  // a fork.KeeperState
	newFile    = ".new"    // one of the first two while it is written
)

// sessionFiles are the endings of all files that a session may have, in the
// order in which they are removed: as long as its state is there, so is it.
func sessionFiles() []string { return []string{newFile, recordFile, holderFile, stateFile} }

// opened is the open directory of a place.
type opened struct {
	fd   int
	path string
}

// open opens the directory of sessions and checks that it is the user's alone.
// With create it is made if missing; else the error is fs.ErrNotExist.
func (p place) open(create bool) (opened, error) {
	o := opened{fd: -1, path: filepath.Join(p.parent, sessionsDir)}
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if p.nofollow {
		flags |= unix.O_NOFOLLOW
	}
	pfd, err := unix.Open(p.parent, flags, 0)
	if errors.Is(err, unix.ENOENT) && create {
		if p.home != "" {
			if _, err := os.Stat(p.home); err != nil {
				return o, err
			}
		}
		if err = os.MkdirAll(p.parent, 0o700); err == nil {
			pfd, err = unix.Open(p.parent, flags, 0)
		}
	}
	if err != nil {
		return o, &os.PathError{Op: "open", Path: p.parent, Err: bare(err)}
	}
	defer unix.Close(pfd)
	if err := private(pfd, p.parent, 0o022); err != nil {
		return o, err
	}
	flags |= unix.O_NOFOLLOW
	fd, err := unix.Openat(pfd, sessionsDir, flags, 0)
	if errors.Is(err, unix.ENOENT) && create {
		if err = unix.Mkdirat(pfd, sessionsDir, 0o700); err == nil || errors.Is(err, unix.EEXIST) {
			fd, err = unix.Openat(pfd, sessionsDir, flags, 0)
		}
	}
	if err != nil {
		return o, &os.PathError{Op: "open", Path: o.path, Err: err}
	}
	if err := private(fd, o.path, 0o077); err != nil {
		unix.Close(fd)
		return o, err
	}
	o.fd = fd
	return o, nil
}

// bare takes the path off an error that gets one of its own.
func bare(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// private checks that fd is a directory or file of the current user with none
// of the permissions in not. The error is ErrForeign.
func private(fd int, path string, not uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w: it belongs to uid %d, you are uid %d", path, ErrForeign, st.Uid, os.Geteuid())
	}
	if uint32(st.Mode)&not != 0 {
		return fmt.Errorf("%s: %w: mode %04o lets others in (chmod go-rwx)", path, ErrForeign, uint32(st.Mode)&0o7777)
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
	fd, err := unix.Openat(o.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: o.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), o.path)
	defer f.Close()
	return f.Readdirnames(-1)
}

// has reports whether a session has any file here.
func (o opened) has(id string) bool {
	var st unix.Stat_t
	return slices.ContainsFunc(sessionFiles(), func(ext string) bool {
		return unix.Fstatat(o.fd, id+ext, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	})
}
