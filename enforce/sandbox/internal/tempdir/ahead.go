package tempdir

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A file system can take long to make a directory, and longer to remove one: with
// "discard" it waits for the disk. So both are done while a command runs. Ahead makes the
// directory of the next run, and removes that of the last one, which LayAside has moved
// away. Both are kept where no command can access them. None is used twice: processes
// outside may have been sent descriptors of it, and only its removal makes these useless.

// The names of the two in Dir.store.
const next, last = "tmp.next", "tmp.last"

// takeNext moves the directory that an earlier run made ahead to parent. One that is not
// empty was made by a command, to which this store was open, and is not taken.
func takeNext(parent, store string) (string, error) {
	made := filepath.Join(store, next)
	if !isEmptyTemp(made) {
		return "", unix.ENOENT
	}
	dir := filepath.Join(parent, "zsbx-"+strconv.FormatUint(uint64(rand.Uint32()), 10))
	return dir, os.Rename(made, dir) // which replaces no directory
}

// Ahead makes the directory of the next run, and removes what LayAside left of the
// last one. Without them the next run takes longer.
func (d *Dir) Ahead() {
	if d == nil {
		return
	}
	_ = removeEmpty(filepath.Join(d.store, last))
	if made := filepath.Join(d.store, next); os.Mkdir(made, 0o700) == nil {
		_ = os.Mkdir(filepath.Join(made, "run"), 0o700)
	}
}

// LayAside moves the directory of a session that has ended to where Ahead removes it. It
// returns false if the directory has to be removed at once.
func (d *Dir) LayAside() bool {
	return d != nil && isEmptyTemp(d.path) && os.Rename(d.path, filepath.Join(d.store, last)) == nil
}

// isEmptyTemp reports whether dir is a directory that only the user can access, not a
// link to one, and has at most an empty directory "run" in it.
func isEmptyTemp(dir string) bool {
	names, err := namesIn(dir)
	if err != nil || len(names) == 0 {
		return err == nil
	}
	run, err := namesIn(filepath.Join(dir, "run"))
	return err == nil && len(names) == 1 && len(run) == 0
}

// namesIn returns the first names in a directory that only the user can access.
func namesIn(dir string) ([]string, error) {
	fd, err := openUsersDir(dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var b [1024]byte // room for one long name
	n, err := unix.ReadDirent(fd, b[:])
	if err != nil {
		return nil, err
	}
	_, _, names := unix.ParseDirent(b[:n], -1, nil)
	return names, nil
}

// removeEmpty removes a temporary directory that has at most an empty "run" in it.
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
