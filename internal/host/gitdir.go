package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// IsGitDir reports whether a directory has what every git directory has.
func (h *Host) IsGitDir(dir string) Presence {
	is := Present
	for _, name := range []string{"objects", "refs", "HEAD"} {
		at := h.Look(path.Join(dir, name))
		switch {
		case at.Presence == Unknown:
			is = Unknown
		case at.Presence == Absent, at.IsDir() == (name == "HEAD"):
			return Absent
		}
	}
	return is
}

// GitDir returns the canonical directory that a file of one line names after prefix: .git
// of a linked worktree or a submodule, or commondir. links are those that lead there. With
// some errors it is unknown what the file names (Unsure).
func (h *Host) GitDir(file, prefix string) (dir string, links []string, _ error) {
	named, err := h.pointer(file, h.Way(file).Path, prefix)
	if err != nil {
		return "", nil, err
	}
	dir, links, st, err := h.Trail(named)
	return dir, links, isDir(named, st, err)
}

// GitPointer reads a file of one line that names a path after prefix. A relative path
// starts at the file's directory. A ".." in it stays, for the file system to follow.
func (h *Host) GitPointer(file, prefix string) (string, error) { return h.pointer(file, file, prefix) }

// pointer is GitPointer for a file that is a link to real, which git follows.
func (h *Host) pointer(file, real, prefix string) (string, error) {
	data, err := h.ReadRegular(real)
	if err != nil {
		return "", err
	}
	named, ok := strings.CutPrefix(strings.TrimRight(data, "\r\n"), prefix)
	if !ok || named == "" {
		return "", otherError(file + " does not name one path")
	}
	if !path.IsAbs(named) {
		named = path.Dir(file) + "/" + named
	}
	return named, nil
}

// ReadRegular reads a regular file: a project may have a FIFO where git has a file, and
// reading that would block forever.
func (h *Host) ReadRegular(file string) (string, error) {
	at := h.Look(file)
	err := at.Err
	if at.Presence == Present && !at.IsRegular() {
		err = otherError("not a regular file")
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	data, err := h.ReadFile(file)
	return string(data), err
}

// RealDir is RealPath for a path that must be a directory.
func (h *Host) RealDir(p string) (string, error) {
	real, st, err := h.RealPath(p)
	return real, isDir(p, st, err)
}

// isDir returns err, or an error if p is not a directory.
func isDir(p string, st Stat, err error) error {
	if err == nil && !st.Mode.IsDir() {
		err = &fs.PathError{Op: "open", Path: p, Err: otherError("not a directory")}
	}
	return err
}

// otherError says that something is known to be there, but not what was looked for.
type otherError string

func (e otherError) Error() string { return string(e) }

// Unsure reports whether an error of GitDir leaves unknown what there is.
func Unsure(err error) bool {
	return err != nil && !Missing(err) && !errors.As(err, new(otherError))
}
