package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/libsystem"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/safepath"
)

// Dir is the private temporary directory of a run. A nil Dir is none.
type Dir struct {
	path string
	lock int // a descriptor, by which Sweep knows that this process lives; -1 for none
}

// Path is the directory's name, without symbolic links; "" for none.
func (d *Dir) Path() string {
	if d == nil {
		return ""
	}
	return d.path
}

// Remove removes the directory with all that is in it.
func (d *Dir) Remove() error {
	if d == nil {
		return nil
	}
	_ = unix.Close(d.lock)
	d.lock = -1
	return remove(d.path)
}

// Make makes the private temporary directory of a run, with the directory "run" in
// it for XDG_RUNTIME_DIR, and on macOS the one for caches that belongs to it. They
// have mode 0700. tmpdir is the caller's TMPDIR.
func Make(tmpdir string) (*Dir, error) {
	var d *Dir
	err := error(nil)
	for _, parent := range tempParents(runtime.GOOS, tmpdir, libsystem.UserTemp()) {
		d, err = makeIn(parent)
		if err == nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("making a private temporary directory: %w", err)
}

// makeIn makes a private temporary directory in parent.
func makeIn(parent string) (*Dir, error) {
	made, err := os.MkdirTemp(parent, "zsbx-")
	if err != nil {
		return nil, err
	}
	d := &Dir{lock: -1}
	err = os.Mkdir(filepath.Join(made, "run"), 0o700)
	if err == nil {
		d.path, err = filepath.EvalSymlinks(made)
	}
	if cache := resolve.PrivateCache(d.path); err == nil && cache != "" {
		err = os.MkdirAll(cache, 0o700) // the user's own may be missing, too
	}
	if err != nil {
		_ = removeEmpty(made)
		return nil, err
	}
	d.lock = locked(d.path, unix.LOCK_SH)
	return d, nil
}

// locked opens a directory and locks it (flock(2)). It returns -1 if that can't be done.
func locked(dir string, how int) int {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	if unix.Flock(fd, how|unix.LOCK_NB) != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// Sweep removes what runs left that were killed before they recorded their directory. There is
// nothing in it, and it belongs to no session of recorded. One that was just made may not be
// locked yet.
func Sweep(tmpdir string, recorded []string) {
	const justMade = time.Minute
	for _, parent := range tempParents(runtime.GOOS, tmpdir, libsystem.UserTemp()) {
		found, _ := filepath.Glob(filepath.Join(parent, "zsbx-*"))
		for _, dir := range found {
			var st unix.Stat_t
			if !isTempName(filepath.Base(dir)) || slices.Contains(recorded, dir) {
				continue
			}
			if unix.Lstat(dir, &st) != nil || !usersAlone(&st) {
				continue
			}
			if time.Since(time.Unix(st.Mtim.Unix())) < justMade {
				continue
			}
			if lock := locked(dir, unix.LOCK_EX); lock >= 0 {
				_ = removeEmpty(dir)
				_ = unix.Close(lock)
			}
		}
	}
}

// tempParents returns the directories to try for a private one, in order. Its name must
// be short: paths of Unix sockets below it must fit into 108 bytes (unix(7)), on macOS
// into 104 (unix(4)). So a long TMPDIR is used only if nothing can be made in /tmp, as
// inside another zsbx run. On macOS it is the user's own directory, whatever TMPDIR says:
// most programs there never look at TMPDIR, and only this directory can be moved for
// them; see policy.PrivateCache.
func tempParents(goos, tmpdir, user string) []string {
	if tmpdir != "" {
		tmpdir = filepath.Clean(tmpdir) // a link before ".." may be a command's
	}
	socketPath := 108
	if goos == "darwin" {
		socketPath = 104
	}
	switch {
	case user != "":
		return []string{user, "/tmp"}
	case !filepath.IsAbs(tmpdir):
		return []string{"/tmp"}
	case len(tmpdir) <= socketPath/2: // half of it is left for the command's names
		return []string{tmpdir, "/tmp"}
	}
	return []string{"/tmp", tmpdir}
}

// remove removes all that Make made.
func remove(dir string) error {
	err := removeTree(dir)
	if cache := resolve.PrivateCache(dir); cache != "" {
		err = errors.Join(err, removeTree(cache))
	}
	return err
}

// removeTree removes a directory of Make's and all that the command put there, or what
// another command put in its place.
func removeTree(dir string) error {
	if removeEmpty(dir) == nil { // most commands leave nothing there
		return nil
	}
	return safepath.RemoveTree(dir)
}

// RemoveOf removes the temporary directory of a session that was ended from outside. A
// command that was only tracked could have written the session's record, so only what
// looks like a directory of Make's is removed.
func RemoveOf(dir string) error {
	if dir == "" {
		return nil
	}
	var st unix.Stat_t
	switch err := unix.Lstat(dir, &st); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	case !isTempName(filepath.Base(dir)) || !usersAlone(&st):
		return fmt.Errorf("%s is not a private temporary directory", dir)
	}
	return remove(dir)
}

// isTempName reports whether a name may come from Make (os.MkdirTemp). "zsbx-caches", with
// the projects' own caches, does not.
func isTempName(name string) bool {
	number, ok := strings.CutPrefix(name, "zsbx-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
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

// usersAlone reports whether this is a directory that only the user can access.
func usersAlone(st *unix.Stat_t) bool {
	return st.Mode == unix.S_IFDIR|0o700 && int(st.Uid) == os.Geteuid()
}
