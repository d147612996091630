package policy

import (
	"fmt"
	"path"
)

// EscapeError says that a path leads out of the directory that it was to
// stay in.
type EscapeError struct {
	Root string // canonical
	Name string // as it was given
	Path string // where it leads
}

// Error names both paths.
func (e *EscapeError) Error() string {
	return fmt.Sprintf("%s leads to %s, outside %s", e.Name, e.Path, e.Root)
}

// Confine gives the canonical path of name, which is taken from root when it
// is relative, or an *EscapeError when that does not lie in root. Root must
// exist. Name need not: ".." is removed lexically, then the longest part that
// exists is resolved and the rest put after it, so that a file which is still
// to be made is judged by the directory it would lie in.
//
// The answer is as old as the call: whoever opens the path later must make
// sure that it is still the same.
func (h Host) Confine(root, name string) (string, error) {
	w := newWalker(&h, 8)
	if !path.IsAbs(root) {
		root = h.Dir + "/" + root
	}
	top, err := w.walk(path.Clean(root))
	switch {
	case err != nil:
		return "", fmt.Errorf("resolving %s: %w", root, err)
	case top.gone != "":
		return "", fmt.Errorf("resolving %s", top.whyGone(root))
	}
	abs := name
	if !path.IsAbs(name) {
		abs = top.path + "/" + name
	}
	pl, err := w.walk(path.Clean(abs))
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", name, err)
	}
	if !Within(pl.path, top.path) {
		return "", &EscapeError{Root: top.path, Name: name, Path: pl.path}
	}
	return pl.path, nil
}
