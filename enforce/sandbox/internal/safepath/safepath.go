package safepath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotOwner says that a directory belongs to somebody else.
var ErrNotOwner = errors.New("the directory above belongs to another user")

// MakeDir makes a directory and those above that are missing, all with the mode
// 0700. A link in the path is an error, one that has just been put there too.
func MakeDir(dir string) error { return makeDir(dir, false, 0o700) }

// MakeDirMode is MakeDir with another mode, of which the umask is taken off (mkdir(2)).
func MakeDirMode(dir string, mode uint32) error { return makeDir(dir, false, mode) }

// MakeOwnDir is MakeDir below a directory of the user's: the nearest one that
// exists must belong to the user of this process. Under sudo with the user's HOME,
// root would leave directories that the user can't write.
func MakeOwnDir(dir string) error { return makeDir(dir, true, 0o700) }

// Upwards lists a path and the directories above it, the root last.
func Upwards(path string) []string {
	out := []string{path}
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		out = append(out, path)
	}
	return out
}

// OpenRoot opens a directory as an os.Root; a link in its path is an error.
func OpenRoot(dir string) (*os.Root, error) {
	f, err := OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	want, err1 := f.Stat()
	got, err2 := root.Stat(".")
	if err1 != nil || err2 != nil || !os.SameFile(want, got) {
		root.Close()
		return nil, fs.ErrNotExist // exchanged in between
	}
	return root, nil
}
