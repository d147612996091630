package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
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
	State  string
	Stages []*stage
	Units  []*unit
	Dirs   []*dir
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
	Not      bool `json:",omitempty"` // it was not done

	// How New looked in a staging directory in the tree, and how Old looks there; see seal.
	Staged, Kept *mark `json:",omitempty"`

	made bool // by this process, or by one before
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

// load reads the journal of a layer, or returns an empty one.
func load(l *layer.Layer) (*journal, error) {
	name := filepath.Join(l.Dir, journalFile)
	j := &journal{Version: journalVersion}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(data, j)
	}
	if err == nil && j.Version != journalVersion {
		err = fmt.Errorf("its version is %d, this zsbx knows %d", j.Version, journalVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("the journal of layer %s can't be read: %w", l.Session, err)
	}
	return j, nil
}

// write writes the journal of a layer whole, and syncs it. One without rounds is removed.
func (j *journal) write(l *layer.Layer) error {
	name := filepath.Join(l.Dir, journalFile)
	if len(j.Rounds) == 0 {
		step("unlink journal")
		err := os.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, syncDir(l.Dir))
	}
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	step("write journal")
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	step("rename journal")
	err = os.Rename(name+".new", name)
	if err != nil {
		return err
	}
	return syncDir(l.Dir)
}

func syncDir(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// step is called before each act that changes something. A test stops there.
var step = func(what string) {}

// Pending reports whether an apply or an undo of a layer has begun and not ended.
func Pending(l *layer.Layer) (bool, error) {
	j, err := load(l)
	if err != nil {
		return false, err
	}
	for _, r := range j.Rounds {
		if r.State != done {
			return true, nil
		}
	}
	return false, nil
}
