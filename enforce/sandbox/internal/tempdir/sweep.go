package tempdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track"
)

// Sweep removes the private temporary directories of runs that were killed
// before they had a record, or of which it was lost: empty ones that no run has
// locked, no record names, and no process has in its environment. What a command
// wrote stays where no record says whose it was.
func Sweep(st *track.Store, tmpdir string) error {
	left := lockLeft("/tmp", st)
	if filepath.IsAbs(tmpdir) {
		left = append(left, lockLeft(tmpdir, st)...)
	}
	defer func() {
		for _, l := range left {
			l.Release()
		}
	}()
	if len(left) == 0 {
		return nil
	}
	// Who used one and let go of it is recorded by now.
	sessions, err := st.List()
	if err != nil {
		return nil // what can't be read may have one, and is told of already
	}
	inUse := mentioned()
	var errs []error
	for _, l := range left {
		recorded := slices.ContainsFunc(sessions, func(i track.Info) bool { return i.Record.Temp == l.path })
		if !recorded && !inUse(l.path) {
			errs = append(errs, removeEmpty(l.path))
		}
	}
	return errors.Join(errs...)
}

// lockLeft locks the temporary directories in parent that no run has locked and
// that are empty. A place for sessions has such a name, too.
func lockLeft(parent string, st *track.Store) []*Dir {
	var places []string
	for _, sessions := range st.Dirs() {
		places = append(places, filepath.Base(filepath.Dir(sessions)))
	}
	parent, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return nil
	}
	d, err := os.Open(parent)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var left []*Dir
	for _, name := range names {
		if !isTempName(name) || slices.Contains(places, name) {
			continue
		}
		dir := filepath.Join(parent, name)
		fd, err := openUsersDir(dir)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || !isEmptyTemp(dir) {
			unix.Close(fd)
			continue
		}
		left = append(left, &Dir{path: dir, lock: fd})
	}
	return left
}

// isEmptyTemp reports whether nothing but an empty directory "run" is in dir.
func isEmptyTemp(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err == nil
	}
	run, err := os.ReadDir(filepath.Join(dir, "run"))
	return err == nil && len(entries) == 1 && len(run) == 0
}

// removeEmpty removes a temporary directory that has become no fuller.
func removeEmpty(dir string) error {
	_ = unix.Rmdir(filepath.Join(dir, "run"))
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}
