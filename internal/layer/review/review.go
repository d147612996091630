package review

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/terminal"
)

// Review has the changes of one layer, and which of them need a look. Whoever made it with Of closes it.
type Review struct {
	Changes []layer.Change

	trees     []string        // their paths
	host      *host.Host      // for what is outside the trees
	before    *host.Host      // with the trees as they are
	after     *host.Host      // with the trees as they would be once all changes are made real
	protected map[string]bool // paths that programs outside run or trust, beside those that protect.Acts knows
	denied    []glob.Glob
	files     Files
	at        map[key]int    // where a change is in Changes
	others    map[key][]key  // other names of a path, by way of links, that programs outside know
	passed    map[key]string // links on the way to what programs outside know, and why they count
	unknown   bool           // not all links and settings of the trees are known
	user      []gitconfig.Setting
	left      int      // how much may still be read, in bytes of settings
	looks     [][]Look // for each change
}

type key struct {
	tree int
	path string
}

// Files reads the files of a layer, and with old those of its trees. It follows no links.
type Files interface {
	Text(tree int, path string, old bool) ([]byte, error) // at most maxText+1 bytes of a regular file
	Link(tree int, path string, old bool) (string, error) // what a symbolic link says
	Type(tree int, path string) (fs.FileMode, error)      // of what is in the tree
	Find(tree int) (found Found, whole bool)              // in the tree; whole if this is all
	Close()
}

// New makes a review of changes in a layer, which must be sorted: a directory before what is in it. Paths are shown
// as from the host's working directory. user are git's settings for all repositories.
func New(l *layer.Record, changes []layer.Change, files Files, h *host.Host, user []gitconfig.Setting) *Review {
	r := &Review{
		Changes: changes, host: h, files: files, left: maxSettings, user: user,
		looks:     make([][]Look, len(changes)),
		others:    make(map[key][]key),
		passed:    make(map[key]string),
		protected: make(map[string]bool),
	}
	for _, t := range l.Trees {
		r.trees = append(r.trees, t.Path)
	}
	for _, p := range l.Protected {
		r.protected[p] = true
	}
	for _, pattern := range l.Denied {
		g, err := glob.Parse(pattern)
		if err == nil { // it was when the policy was read
			r.denied = append(r.denied, g)
		}
	}
	r.before = r.view(true)
	r.after = r.view(false)
	r.index()
	r.learn()
	for i := range changes {
		r.looks[i] = r.judge(&changes[i])
	}
	return r
}

// Close closes what a review made by Of reads.
func (r *Review) Close() { r.files.Close() }

// Looks returns why the change with this index needs a look; nothing if it does not.
func (r *Review) Looks(i int) []Look { return r.looks[i] }

// Clean reports whether no change needs a look.
func (r *Review) Clean() bool { return r.needing() == 0 }

// needing counts the changes that need a look.
func (r *Review) needing() int {
	n := 0
	for _, l := range r.looks {
		if len(l) > 0 {
			n++
		}
	}
	return n
}

// Part returns a review of some of the changes, judged as before.
func (r *Review) Part(is func(*layer.Change) bool) *Review {
	part := *r
	part.Changes = nil
	part.looks = nil
	for i := range r.Changes {
		if is(&r.Changes[i]) {
			part.Changes = append(part.Changes, r.Changes[i])
			part.looks = append(part.looks, r.looks[i])
		}
	}
	part.index()
	return &part
}

// index notes where each change is.
func (r *Review) index() {
	r.at = make(map[key]int, len(r.Changes))
	for i := range r.Changes {
		r.at[key{r.Changes[i].Tree, r.Changes[i].Path}] = i
	}
}

// Path returns the absolute path of what a change changes.
func (r *Review) Path(c *layer.Change) string { return r.full(key{c.Tree, c.Path}) }

func (r *Review) full(at key) string { return path.Join(r.trees[at.tree], at.path) }

// names returns a path as protect judges it, by all its names: the tree itself may be in a directory that counts.
func (r *Review) names(at key) string { return strings.TrimPrefix(r.full(at), "/") }

// place returns where an absolute path is in the trees, if it is in one.
func (r *Review) place(p string) (at key, in bool) {
	for i, top := range r.trees {
		below, err := filepath.Rel(top, path.Clean(p))
		if err == nil && filepath.IsLocal(below) {
			return key{i, below}, true
		}
	}
	return key{}, false
}

// NameFrom returns the name of something in a tree that a command line takes in a working directory: relative to that
// directory if it is in the tree or above it, else to the only tree, else absolute.
func NameFrom(dir string, trees []string, tree int, rel string) string {
	top := trees[tree]
	full := path.Join(top, rel)
	if host.Within(dir, top) || host.Within(top, dir) && dir != "/" {
		name, err := filepath.Rel(dir, full)
		if err == nil {
			return asWord(name)
		}
	}
	if len(trees) == 1 && dir != "/" {
		return asWord(rel)
	}
	return full
}

// asWord keeps a relative name from being taken for a flag, or by a shell for a home directory or a comment.
func asWord(name string) string {
	if strings.IndexAny(name, "-~#") == 0 {
		return "./" + name
	}
	return name
}

// name writes a path for people, as a command line takes it.
func (r *Review) name(tree int, rel string) string {
	return printable(NameFrom(r.host.Dir, r.trees, tree, rel))
}

// treeName writes the path of a tree for people.
func (r *Review) treeName(tree int) string {
	switch r.trees[tree] {
	case r.host.Dir:
		return "./"
	case "": // the record is damaged
		return "an unknown directory"
	}
	return printable(r.trees[tree])
}

// printable escapes a text so that it stays in its line and column.
func printable(s string) string { return strings.ReplaceAll(terminal.Printable(s), "\t", `\t`) }

// why joins the reasons to look at a change.
func (r *Review) why(i int) string {
	var all []string
	for _, l := range r.looks[i] {
		all = append(all, printable(l.Why))
	}
	return strings.Join(all, "; ")
}

// mainMode returns the type and permissions of what a change makes, or removes.
func mainMode(c *layer.Change) fs.FileMode {
	if c.Op == layer.Remove && c.Was != nil {
		return c.Was.Mode
	}
	return c.Type
}

// wasSize returns the size of what was there, 0 if that is not known.
func wasSize(c *layer.Change) int64 {
	if c.Was == nil {
		return 0
	}
	return c.Was.Size
}

// JSON is a review as --json prints it.
type JSON struct {
	Trees   []string     `json:"trees"`
	Clean   bool         `json:"clean"`
	Changes []JSONChange `json:"changes"`
}

// JSONChange is a change as --json prints it.
type JSONChange struct {
	Tree string   `json:"tree"`
	Path string   `json:"path"`
	Op   layer.Op `json:"op"`
	Type string   `json:"type"`
	Mode string   `json:"mode"`
	Size int64    `json:"size"`
	Look []Look   `json:"look"`
}

// JSON returns the review as --json prints it.
func (r *Review) JSON() JSON {
	out := JSON{Trees: r.trees, Clean: r.Clean()}
	for i := range r.Changes {
		c := &r.Changes[i]
		out.Changes = append(out.Changes, JSONChange{
			Tree: r.trees[c.Tree], Path: c.Path, Op: c.Op, Type: kind(mainMode(c)), Mode: mode(mainMode(c)),
			Size: c.Size, Look: r.looks[i],
		})
	}
	return out
}

// kind names the type of a file.
func kind(m fs.FileMode) string {
	for _, k := range kinds {
		if m&fs.ModeType == k.is {
			return k.name
		}
	}
	return "device"
}

var kinds = []struct {
	is   fs.FileMode
	name string
}{
	{0, "file"},
	{fs.ModeDir, "directory"},
	{fs.ModeSymlink, "link"},
	{fs.ModeNamedPipe, "fifo"},
	{fs.ModeSocket, "socket"},
}
