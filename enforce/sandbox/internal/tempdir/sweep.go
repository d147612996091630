package tempdir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track"
)

// Sweep removes the private temporary directories of runs that were killed
// before they had a record, or of which it was lost: empty ones that no run has
// locked, no record names, and no process has in its environment. What a command
// wrote stays where no record says whose it was. On macOS, where no process can be
// asked, it removes none.
func Sweep(st *track.Store, tmpdir string) error {
	if runtime.GOOS == "darwin" {
		return nil
	}
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
		if recorded || inUse(l.path) {
			continue
		}
		if err := removeEmpty(l.path); !errors.Is(err, unix.ENOTEMPTY) { // somebody uses it after all
			errs = append(errs, err)
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

// isEmptyTemp reports whether dir is a directory of the user's alone, and no link to
// one, with nothing but another such, "run", in it.
func isEmptyTemp(dir string) bool {
	names, err := namesIn(dir)
	if err != nil || len(names) == 0 {
		return err == nil
	}
	run, err := namesIn(filepath.Join(dir, "run"))
	return err == nil && len(names) == 1 && len(run) == 0
}

// namesIn gives the first names in a directory of the user's alone.
func namesIn(dir string) ([]string, error) {
	fd, err := openUsersDir(dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var b [1024]byte // one long name has room
	n, err := unix.ReadDirent(fd, b[:])
	if err != nil {
		return nil, err
	}
	_, _, names := unix.ParseDirent(b[:n], -1, nil)
	return names, nil
}

// removeEmpty removes a temporary directory that has become no fuller.
func removeEmpty(dir string) error {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR { // a command may have put a link there
		_ = unix.Rmdir(filepath.Join(dir, "run"))
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// mentioned reads the environments that the user's processes were started with,
// and reports of a directory whether it is in one: a session whose record lies
// in another place may use it.
func mentioned() func(dir string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var all [][]byte
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("/zsbx-")) {
			all = append(all, b)
		}
	}
	return func(dir string) bool {
		return slices.ContainsFunc(all, func(b []byte) bool { return bytes.Contains(b, []byte(dir)) })
	}
}
