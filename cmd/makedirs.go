package cmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zsbx/zsbx/policy"
)

// makeDirs makes the directories that presets want to be there, such as a
// build cache, and resolves again when there were any: Landlock can allow
// only what exists, and a tool that can't make its cache fails. One that
// can't be made is left alone; the tool says so in its own words.
func (c *composed) makeDirs(r *policy.Resolved) (*policy.Resolved, error) {
	made := false
	for _, rule := range r.Create {
		if makeOwnDir(rule.Path) == nil {
			made = true
		}
	}
	if !made {
		return r, nil
	}
	return c.resolve()
}

// errNotOwn says that a directory belongs to somebody else.
var errNotOwn = errors.New("the directory above belongs to another user")

// makeOwnDir makes a directory and those above that are missing, all with the
// mode 0700, as the XDG base directory specification asks for. The nearest
// one that exists must belong to the user of this process: under sudo with
// the user's HOME, root would leave directories that the user can't write.
func makeOwnDir(dir string) error {
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		st, err := os.Lstat(above)
		if errors.Is(err, fs.ErrNotExist) && above != filepath.Dir(above) {
			continue
		}
		if err != nil {
			return err
		}
		if !ownedByUs(st) {
			return errNotOwn
		}
		return os.MkdirAll(dir, 0o700)
	}
}
