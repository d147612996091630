package host

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
)

// Presence is what a look at a path says. A path that can't be looked at may exist all the same: a
// command may change the modes of its directories, and change them back later. So the zero value
// is Unknown.
type Presence uint8

const (
	Unknown Presence = iota // something may be there
	Absent                  // nothing is there
	Present                 // something is there
)

// Found is the answer to a look at a path. The zero value is Unknown.
type Found struct {
	Presence Presence
	Stat     Stat  // if it is Present
	Err      error // if it is not
}

// Missing reports whether an error says that nothing is at a path. Every other error leaves
// that unknown.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Seen makes a Found of the results of Host.Lstat, RealPath and so on.
func Seen(st Stat, err error) Found {
	switch {
	case err == nil:
		return Found{Presence: Present, Stat: st}
	case Missing(err):
		return Found{Presence: Absent, Err: err}
	}
	return Found{Err: err}
}

// Look looks at a path without following a link that is its last name.
func (h *Host) Look(p string) Found { return Seen(h.Lstat(p)) }

// IsDir reports whether it is known that a directory is there.
func (f Found) IsDir() bool { return f.Presence == Present && f.Stat.Mode.IsDir() }

// IsRegular reports whether it is known that a regular file is there.
func (f Found) IsRegular() bool { return f.Presence == Present && f.Stat.Mode.IsRegular() }

// IsLink reports whether it is known that a symbolic link is there.
func (f Found) IsLink() bool { return f.Presence == Present && f.Stat.Mode&fs.ModeSymlink != 0 }

// MayOpen reports whether a command could get into a directory: it may search it, or its owner
// is the user, who can change its mode.
func (h *Host) MayOpen(dir string, st Stat) bool {
	if h.UID == 0 || st.UID == h.UID {
		return true
	}
	return !errors.Is(h.Look(dir+"/.").Err, fs.ErrPermission)
}

// MayChmod reports whether this user can change the mode of what is at a path (chmod(2)).
func (h *Host) MayChmod(p string) bool {
	at := h.Look(p)
	return at.Presence == Present && (h.UID == 0 || at.Stat.UID == h.UID)
}

// MayReach reports whether a command could look at a path at which zsbx can't look: it may
// change the mode of the innermost directory on the way that can be seen.
func (h *Host) MayReach(p string) bool {
	at := h.Look(p)
	why := at.Err
	for at.Presence != Present && p != "/" {
		p = path.Dir(p)
		at = h.Look(p)
	}
	return !errors.Is(why, fs.ErrPermission) || h.MayOpen(p, at.Stat)
}
