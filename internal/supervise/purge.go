package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/internal/track"
)

// Kept returns the directories with what zsbx keeps of this user, by this process's environment: its state, then
// the caches of projects and agents. The user's own policies and preferences are not among them. It is an error if
// one is a link or another user's.
func Kept(st *track.Store) (dirs []string, _ error) {
	var errs []error
	for _, dir := range slices.Concat(st.Parents(), []string{LayerState()}, resolve.Caches(callersHost())) {
		real, err := keptDir(dir)
		switch {
		case err != nil:
			errs = append(errs, err)
		case real != "" && !slices.Contains(dirs, real):
			dirs = append(dirs, real)
		}
	}
	return dirs, errors.Join(errs...)
}

// ConfigDir returns the directory with the user's own policies and preferences, or "" without HOME.
func ConfigDir() string {
	dir := callersHost().ConfigHome()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "zsbx")
}

// keptDir returns one of zsbx's directories without links in its path, or "" if it does not exist.
func keptDir(dir string) (string, error) {
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if !filepath.IsAbs(dir) || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	dir = filepath.Join(above, filepath.Base(dir))
	st, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	switch {
	case err != nil:
		return "", err
	case !safepath.OwnedBy(st, os.Geteuid()):
		return "", fmt.Errorf("%s is another user's", dir)
	case !st.IsDir():
		return "", fmt.Errorf("%s is no directory; a link is not followed", dir)
	}
	return dir, nil
}

// Purge removes directories that Kept has returned, and returns those that it has removed. The sessions must have
// been cleared, and there must be no layers. A session that begins meanwhile has a file, which stays.
func Purge(dirs []string) (removed []string, _ error) {
	if err := layer.Clear(LayerState()); err != nil {
		return nil, err
	}
	var errs []error
	for _, dir := range dirs {
		err := removeKept(dir)
		if err == nil {
			removed = append(removed, dir)
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// removeKept removes one of zsbx's directories, but no sessions and no layers.
func removeKept(dir string) error {
	entries, err := files.List(dir, -1)
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != track.SessionsDir && e.Name() != layer.StoreDir {
			errs = append(errs, safepath.RemoveTree(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(append(errs, os.Remove(dir))...)
}
