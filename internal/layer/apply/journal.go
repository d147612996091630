package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"github.com/zsbx/zsbx/internal/layer"
)

const (
	journalFile    = "journal"
	journalVersion = 1
)

// The states of a round. Before there is a journal of it, nothing was changed.
const (
	staging   = "staging"   // nothing but staging directories has to be removed
	committed = "committed" // it may be done in part, and is to be done
	done      = "done"
	undoing   = "undoing" // it may be done in part, and is to be taken back
)

// journal is what applies of a layer did, the oldest round first.
type journal struct {
	Version int
	Rounds  []*round
}

// round is one apply.
type round struct {
	N      int // no other has it, since staging directories are named by it
	State  string
	Stages []*stage
	Units  []*unit
	Dirs   []*dir
}

// next returns the number of the next round. A round in the middle may have gone.
func (j *journal) next() int {
	n := 0
	for _, r := range j.Rounds {
		n = max(n, r.N)
	}
	return n + 1
}

// stage is a staging directory.
type stage struct {
	Tree   int
	Kept   string // its name in the layer's directory
	Name   string // in the tree
	InTree bool   // it is there: nothing can be renamed between the tree and the layer's directory
	Ino    uint64 // 0 if it was perhaps not made
}

// unit is one rename. A path is bytes: it need not be UTF-8.
type unit struct {
	N        int // its name in the staging directory
	Tree     int
	Path     []byte
	Op       layer.Op
	Type     fs.FileMode
	Count    int // changes
	New, Old mark
	Left     [][]byte `json:",omitempty"` // what is not made of a new directory
	Not      bool     `json:",omitempty"` // it was not done
	Since    bool     `json:",omitempty"` // it is not taken back: somebody has changed it since

	// How New looked in a staging directory in the tree, how Old looks there, and how New looks in its place; see seal.
	Staged, Kept, Placed *mark `json:",omitempty"`
}

func (u *unit) name() string { return strconv.Itoa(u.N) }

// mark is how something looks: its inode, and a digest of what stat(2) says of it and of all below.
type mark struct {
	Ino uint64
	Sum [2]uint64
}

// dir is a directory of which mode, times and attributes are set.
type dir struct {
	Tree     int
	Path     []byte
	Ino      uint64
	Count    int   // 1 if that is a change
	Old, New *look // nil if it is not there then
}

// look is how a directory looks.
type look struct {
	Mode         uint32
	Atime, Mtime int64
	Attrs        map[string][]byte // nil: as they are
}

// asIs is a time that is left as it is.
const asIs = math.MinInt64

var errUnread = errors.New("can't be read")

// load reads the journal of a layer, or returns an empty one.
func load(l *layer.Layer) (*journal, error) {
	j := &journal{Version: journalVersion}
	err := l.Load(journalFile, j)
	if err == nil && j.Version != journalVersion {
		err = fmt.Errorf("its version is %d, this zsbx knows %d", j.Version, journalVersion)
	}
	if err == nil && !j.whole(len(l.Trees)) {
		err = errors.New("something in it is missing, or names a directory that the layer does not have")
	}
	if err != nil {
		return nil, fmt.Errorf("the journal of layer %s %w: %w", l.Session, errUnread, err)
	}
	return j, nil
}

// whole reports whether nothing is missing in a journal, and all is in one of so many trees.
func (j *journal) whole(trees int) bool {
	in := func(tree int) bool { return 0 <= tree && tree < trees }
	for _, r := range j.Rounds {
		if r == nil || slices.ContainsFunc(r.Stages, func(s *stage) bool { return s == nil || !in(s.Tree) }) ||
			slices.ContainsFunc(r.Units, func(u *unit) bool { return u == nil || !in(u.Tree) }) ||
			slices.ContainsFunc(r.Dirs, func(d *dir) bool { return d == nil || !in(d.Tree) }) {
			return false
		}
	}
	return true
}

// write writes the journal of a layer. One without rounds is removed.
func (j *journal) write(l *layer.Layer) error {
	step("write journal")
	if len(j.Rounds) == 0 {
		return l.Delete(journalFile)
	}
	return l.Save(journalFile, j)
}

// sort puts the outer directories of a round first: their paths are shorter. The trees were added first.
func (r *round) sort() {
	slices.SortStableFunc(r.Dirs, func(a, b *dir) int { return len(a.Path) - len(b.Path) })
}

// step is called before each act that changes something. A test stops there.
var step = func(what string) {}

// Pending reports whether an apply or an undo of a layer has begun and not ended.
func Pending(l *layer.Layer) (bool, error) {
	j, err := load(l)
	return err == nil && j.pending(), err
}

// Left returns those of some changes of a layer that no apply has made. What has changed since an apply is not among
// them, even if that is a conflict.
func Left(l *layer.Layer, changes []layer.Change) ([]layer.Change, error) {
	j, err := load(l)
	if err != nil {
		return changes, err
	}
	made := make(map[at]bool) // or left out; the nearest directory decides
	for _, r := range j.Rounds {
		for _, u := range r.Units {
			if r.State != done || u.Not {
				continue
			}
			made[at{u.Tree, string(u.Path)}] = true
			for _, left := range u.Left {
				made[at{u.Tree, string(left)}] = false
			}
		}
	}
	return slices.DeleteFunc(changes, func(c layer.Change) bool {
		for p := place(&c); p.path != ""; p = p.above() {
			is, known := made[p]
			if known {
				return is
			}
		}
		return false
	}), nil
}

func (j *journal) pending() bool {
	return slices.ContainsFunc(j.Rounds, func(r *round) bool { return r.State != done })
}
