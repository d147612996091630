package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// tempDir is the private temporary directory of a run. The zero value is none.
type tempDir struct {
	a    *app
	path string
	keep bool // the command's background processes may still need it
	over bool // no process of the command is left

	// inPlace says that this process may be as restricted as the command that
	// it did not become; the keeper removes the directory.
	inPlace bool
}

// makeTemp makes the private temporary directory, unless the flags want none,
// and tells the policy's host, which is enough to allow it.
func (o *policyFlags) makeTemp(a *app, c *composed) (*tempDir, error) {
	if o.sharedTmp || o.noBaseline {
		return &tempDir{}, nil
	}
	dir, err := makeTempDir(a.getenv("TMPDIR"))
	c.host.TempDir = dir
	return &tempDir{a: a, path: dir}, err
}

// remove removes the directory, or lays it aside for the next run.
func (t *tempDir) remove() {
	if t.path == "" || t.keep || t.over && layAside(t.path) {
		return
	}
	if err := removeTempDir(t.path); err != nil && !t.inPlace {
		t.a.say.warn("removing the private temporary directory: %v", err)
	}
}

// makeTempDir makes the private temporary directory of a run, with the
// directory "run" in it for XDG_RUNTIME_DIR. Both are 0700, and the name that
// is given back is free of symbolic links. It is short: paths of Unix sockets
// below it must fit into 108 bytes (unix(7)), so a long TMPDIR is used only where
// nothing can be made in /tmp, as inside of another zsbx run.
func makeTempDir(tmpdir string) (string, error) {
	parents := [2]string{"/tmp", tmpdir}
	if !filepath.IsAbs(tmpdir) {
		parents[1] = "/tmp"
	} else if len(tmpdir) <= longestTempParent {
		parents = [2]string{tmpdir, "/tmp"}
	}
	if dir := takeUp(parents[0]); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp(parents[0], "zsbx-")
	if err != nil && parents[0] != parents[1] {
		dir, err = os.MkdirTemp(parents[1], "zsbx-")
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "run"), 0o700)
	}
	if err != nil {
		if dir != "" {
			os.Remove(dir)
		}
		return "", &failure{code: codeFailed, status: exitFailed, hint: tempHint("/var/tmp"),
			err: fmt.Errorf("making a private temporary directory: %w", err)}
	}
	return filepath.EvalSymlinks(dir)
}

// tempHint is what to type where no temporary directory can be made: another
// directory for them, if one can be made there, or to do without.
func tempHint(parent string) string {
	dir, err := os.MkdirTemp(parent, "zsbx-")
	if err != nil {
		return "--shared-tmp"
	}
	os.Remove(dir)
	return "export TMPDIR=" + parent
}

// longestTempParent leaves half of a socket's path to the command.
const longestTempParent = 54

// removeTempDir removes what makeTempDir made and all that the command put
// there. It follows no symbolic link: os.RemoveAll goes by openat(2) with
// O_NOFOLLOW. Directories that the command made unreadable (a Go module cache)
// are made accessible first.
func removeTempDir(dir string) error {
	// Most commands leave nothing there.
	if syscall.Rmdir(filepath.Join(dir, "run")) == nil && syscall.Rmdir(dir) == nil {
		return nil
	}
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	unlockTop(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	unlockDirs(root)
	root.Close()
	return os.RemoveAll(dir)
}

// removeSessionTemp removes the temporary directory of a session that was ended
// from outside. The record of a session whose command was only tracked could be
// the command's own work: nothing is removed but what looks like makeTempDir's.
func removeSessionTemp(dir string) error {
	if dir == "" {
		return nil
	}
	st, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	own, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !strings.HasPrefix(filepath.Base(dir), "zsbx-") || st.Mode() != os.ModeDir|0o700 || int(own.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a private temporary directory", dir)
	}
	return removeTempDir(dir)
}

// unlockTop does for the directory itself what unlockDirs does below it. Root
// needs no right, and must not follow a link that comes in between.
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
	entries, _ := d.ReadDir(-1)
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
