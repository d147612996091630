package layer

import "io/fs"

// Op is what a change does. Its texts are those of --json.
type Op string

const (
	Add    Op = "add"    // the tree had nothing there
	Modify Op = "change" // it had something, perhaps of another type
	Remove Op = "remove"
)

// Change is one difference between a tree and what the command saw of it. A directory that is added or
// removed is a change, and so is each entry in it.
type Change struct {
	Tree int         `json:",omitempty"` // an index in Record.Trees
	Path string      // relative to the tree, which is "." itself; any bytes
	Op   Op          // what the command did
	Type fs.FileMode // type and permissions; of a removed entry those that it had
	Size int64       // in bytes; of a removed entry the one that it had

	Inode uint64 `json:",omitempty"` // in the layer: names of one file have the same; 0 if removed
	Links uint64 `json:",omitempty"` // how many names the file has in the layer

	Shares bool `json:",omitempty"` // a directory has a new default access control list that lets others write

	Was      *State `json:",omitempty"` // what the tree had when the layer was frozen, nil if nothing
	Lost     bool   `json:",omitempty"` // the command saw something there, of which the tree had nothing in the end
	Conflict string `json:",omitempty"` // how the tree has changed meanwhile, or ""
	Refused  string `json:",omitempty"` // why the change is never made real, or ""
	Foreign  string `json:",omitempty"` // for root: that it comes to belong to somebody else, or ""
	Declined bool   `json:",omitempty"` // somebody has decided that it is not made real
}

// Touched is a directory with another time in the layer. Something may have been made in it and removed again,
// or a program such as make(1) goes by that time. That alone is no change.
type Touched struct {
	Tree int
	Path string // relative to the tree, as in Change
	Was  int64  // the time in the tree when the layer was frozen, in nanoseconds since 1970
}

// State is what a tree had in one place, as stat(2) tells.
type State struct {
	Mode     fs.FileMode
	Size     int64 // in bytes
	UID, GID uint32
	Inode    uint64
	Links    uint64 // how many names the file had
	Modified int64  // nanoseconds since 1970
	Changed  int64  // the same of the status change time (inode(7)), which nobody can set
	Sum      string // SHA-256 of the content or of where a link leads, in hexadecimal; "" if it was not read
	Late     bool   // it had changed, or something above it, after the command began
}
