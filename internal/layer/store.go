package layer

import (
	"errors"
	"path/filepath"
	"strconv"
	"time"
)

// recordVersion is the format that this package writes.
const recordVersion = 1

// ErrNotFound says that no layer has that id, name or prefix.
var ErrNotFound = errors.New("no such layer")

// Record is what is stored about a layer when it is made.
type Record struct {
	Version int      // of the format; Make sets it
	Session string   // the id of the session that wrote the layer
	Name    string   // of the session, or ""
	Command []string // what ran
	Dir     string   // where
	Began   time.Time
	Trees   []Tree

	Protected []string // paths in the trees that programs outside run or trust, and that the command could write
}

// Tree is a directory that has a layer.
type Tree struct {
	Path     string // canonical
	Dev, Ino uint64 // as host.FileID
}

// Layer is what one session wrote.
type Layer struct {
	Record

	Dir    string // where it is kept
	Damage error  // why Record can't be read. It has only what is known without it
}

// TreeDir returns the directory with the upper, work and lower directory of a tree.
func (l *Layer) TreeDir(n int) string { return filepath.Join(l.Dir, strconv.Itoa(n)) }

var errNotYet = errors.New("not yet")

// Make makes a layer in a state directory such as ~/.local/state/zsbx. Remove removes it.
func Make(state string, r Record) (*Layer, error) { return nil, errNotYet }

// All returns all layers, the oldest first. What could not be read is an error; the others are returned, too.
func All(state string) ([]*Layer, error) { return nil, nil }

// Find returns the layer that ref means: the id of its session, the unambiguous beginning of that, or a
// name, which means the last that had it. The error is ErrNotFound if there is none.
func Find(state, ref string) (*Layer, error) { return nil, ErrNotFound }

// Size returns how much space the layer takes, and how many entries it has that are no directories.
func (l *Layer) Size() (bytes int64, files int, err error) { return 0, 0, errNotYet }

// Remove removes the layer and all that is in it.
func (l *Layer) Remove() error { return errNotYet }

// Freeze notes the changes, and what the trees have in these places. It may be called once nothing is left of
// the session. What changes in the trees after that is a conflict.
func (l *Layer) Freeze() error { return errNotYet }

// Frozen reports whether the layer was frozen.
func (l *Layer) Frozen() bool { return false }

// Changes returns all changes, sorted by trees and names, a directory before what is in it. What the trees have
// by now, such as after a part was applied, is left out.
func (l *Layer) Changes() ([]Change, error) { return nil, errNotYet }
