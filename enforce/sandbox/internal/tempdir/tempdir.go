package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/libsystem"
	"github.com/zsbx/zsbx/enforce/sandbox/internal/safepath"
	"github.com/zsbx/zsbx/policy"
)

// Dir is the private temporary directory of a run. A nil Dir is none.
type Dir struct {
	path  string
	store string // where Ahead makes directories
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
	return remove(d.path)
}

// Make makes the private temporary directory of a run, with the directory "run" in
// it for XDG_RUNTIME_DIR, and on macOS the one for caches that belongs to it. They
// have mode 0700. tmpdir is the caller's TMPDIR. Ahead makes directories in store, which
// no command may write.
func Make(tmpdir, store string) (*Dir, error) {
	if !filepath.IsAbs(store) || safepath.OnlyMine(store) != nil { // there is no home directory, or it is another user's
		store = os.DevNull
	}
	var d *Dir
	err := error(nil)
	for _, parent := range tempParents(runtime.GOOS, tmpdir, libsystem.UserTemp()) {
		if d, err = makeIn(parent, store); err == nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("making a private temporary directory: %w", err)
}

// makeIn makes a private temporary directory in parent.
func makeIn(parent, store string) (*Dir, error) {
	made, err := takeNext(parent, store)
	if err != nil {
		made, err = os.MkdirTemp(parent, "zsbx-")
	}
	if err != nil {
		return nil, err
	}
	d := &Dir{store: store}
	if err = os.Mkdir(filepath.Join(made, "run"), 0o700); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		d.path, err = filepath.EvalSymlinks(made)
	}
	if cache := policy.PrivateCache(d.path); err == nil && cache != "" {
		err = os.MkdirAll(cache, 0o700) // the user's own may be missing, too
	}
	if err != nil {
		_ = removeEmpty(made)
		return nil, err
	}
	return d, nil
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
	case len(tmpdir) <= socketPath/2: // half of it is for the command's names
		return []string{tmpdir, "/tmp"}
	}
	return []string{"/tmp", tmpdir}
}

// remove removes all that Make made.
func remove(dir string) error {
	err := removeTree(dir)
	if cache := policy.PrivateCache(dir); cache != "" {
		err = errors.Join(err, removeTree(cache))
	}
	return err
}

// removeTree removes a directory of Make's and all that the command put
// there. It follows no symbolic link: os.RemoveAll goes by openat(2) with
// O_NOFOLLOW. Directories that the command made unreadable (a Go module cache)
// are made accessible first.
func removeTree(dir string) error {
	// Most commands leave nothing there.
	if removeEmpty(dir) == nil {
		return nil
	}
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := unlock(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// unlock gives the owner all rights on a directory and those below. Another command may
// have put a link in its place.
func unlock(dir string) error {
	unlockTop(dir)
	root, err := safepath.OpenRoot(dir)
	if err == nil {
		unlockDirs(root)
		root.Close()
	}
	return err
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

// unlockTop does for the directory itself what unlockDirs does below it. Root needs no
// rights, and must not follow a link that is put there meanwhile.
func unlockTop(dir string) {
	if st, err := os.Lstat(dir); err == nil && st.IsDir() && os.Geteuid() != 0 {
		os.Chmod(dir, 0o700)
	}
}

// unlockDirs gives the owner all rights on every directory below root. An
// os.Root never leads outside, whatever is renamed meanwhile.
func unlockDirs(root *os.Root) {
	d, err := root.Open(".")
	if err != nil {
		return
	}
	defer d.Close()
	entries, _ := d.ReadDir(-1) // fs.WalkDir leaves out names that are not UTF-8
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		root.Chmod(e.Name(), 0o700)
		if sub, err := root.OpenRoot(e.Name()); err == nil {
			unlockDirs(sub)
			sub.Close()
		}
	}
}

// openUsersDir opens a directory that only the user can access, but not through a link.
// Package os would add it to epoll(7).
func openUsersDir(name string) (int, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || !usersAlone(&st) {
		unix.Close(fd)
		return -1, unix.EPERM
	}
	return fd, nil
}

// usersAlone reports whether this is a directory that only the user can access.
func usersAlone(st *unix.Stat_t) bool {
	return st.Mode == unix.S_IFDIR|0o700 && int(st.Uid) == os.Geteuid()
}
