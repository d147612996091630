package cmd

import (
	"os"
	"path"

	"github.com/zsbx/zsbx/policy"
)

// makeLinks makes the links in the project's own cache that presets want. A
// command may have put anything there: an os.Root never leads outside of it.
// A link that can't be made is left alone; the tool has a cold cache then.
func makeLinks(r *policy.Resolved) {
	if len(r.Links) == 0 {
		return
	}
	root, err := openRootNoLinks(r.Cache)
	if err != nil {
		return
	}
	defer root.Close()
	for _, l := range r.Links {
		old, err := root.Readlink(l.Name)
		if err == nil && old == l.To {
			continue
		}
		if err == nil {
			root.Remove(l.Name) // it led to where the shared cache was before
		} else {
			root.Mkdir(path.Dir(l.Name), 0o700)
		}
		root.Symlink(l.To, l.Name)
	}
}

// openRootNoLinks opens a directory by a path without any symbolic link in it.
func openRootNoLinks(dir string) (*os.Root, error) {
	f, err := openFileNoLinks(dir, os.O_RDONLY, 0)
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
		return nil, os.ErrNotExist // exchanged in between
	}
	return root, nil
}
