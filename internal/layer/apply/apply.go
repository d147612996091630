package apply

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/shell"
)

// Options says what is applied. Paths are absolute, and mean all that is below them, too.
type Options struct {
	Paths        []string                 // nil is all
	Only         func(*layer.Change) bool // of those, the ones that are made, and no others; nil is all
	Theirs, Ours []string                 // of conflicts here, take what the command wrote, or leave what is there
	Progress     func(done, total int)
}

// Mistakes says that paths of Options mean nothing in a layer. Nothing was applied.
type Mistakes []Mistake

// Mistake is one of these paths.
type Mistake struct {
	Option string // "theirs" or "ours"; "" is Paths
	Path   string
	Why    string
}

func (m Mistakes) Error() string {
	var all []string
	for _, x := range m {
		all = append(all, strings.TrimLeft(x.Option+" "+shell.Quote(x.Path)+": "+x.Why, " "))
	}
	return strings.Join(all, "; ")
}

// check returns the mistakes in options, nil if there are none.
func (o *Options) check(changes []layer.Change, trees []layer.Tree) error {
	var wrong Mistakes
	for _, option := range []struct {
		name  string
		paths []string
	}{{"", o.Paths}, {"theirs", o.Theirs}, {"ours", o.Ours}} {
		for _, p := range option.paths {
			if why := o.wrong(option.name, p, changes, trees); why != "" {
				wrong = append(wrong, Mistake{option.name, p, why})
			}
		}
	}
	if wrong == nil {
		return nil
	}
	return wrong
}

// wrong returns why a path of an option means nothing, or "".
func (o *Options) wrong(option, p string, changes []layer.Change, trees []layer.Tree) string {
	change, conflict := below(p, changes, trees)
	decides := option != ""
	for _, reason := range []struct {
		is  bool
		why string
	}{
		{!change, "nothing would change there or below"},
		{decides && !conflict, "no conflict is there or below"},
		{decides && o.Paths != nil && !among(o.Paths, p), "it is not among the paths that are to be applied"},
		{option == "ours" && slices.Contains(o.Theirs, p), "it can't be decided both ways"},
	} {
		if reason.is {
			return reason.why
		}
	}
	return ""
}

// below reports whether a layer changes something at a path or below it, and whether a conflict is there.
func below(p string, changes []layer.Change, trees []layer.Tree) (change, conflict bool) {
	for i := range changes {
		c := &changes[i]
		if !c.Declined && among([]string{p}, filepath.Join(trees[c.Tree].Path, c.Path)) {
			change = true
			conflict = conflict || c.Conflict != ""
		}
	}
	return change, conflict
}

// Result is what an apply did.
type Result struct {
	Applied            int            // changes, with those of an earlier apply that did not end
	Conflicts, Refused []layer.Change // those among Paths that were not applied
	Left               int            // changes that the layer still has, but for those that Ours dropped; -1: unknown
}

// dirPerm is what the owner of a directory needs to make and remove files in it.
const dirPerm = 0o300

// node is a change, with those in it if they are made in one step.
type node struct {
	*layer.Change

	whole bool // the changes below belong to this one
	not   bool // it is not made
	below []*node
	count int // changes here and below
}

// at is a place in a tree.
type at struct {
	tree int
	path string
}

func place(c *layer.Change) at { return at{c.Tree, c.Path} }

// above returns the directory that a place is in. The tree itself is in none.
func (p at) above() at {
	if p.path == "." {
		return at{p.tree, ""}
	}
	return at{p.tree, path.Dir(p.path)}
}

// plan is what is to be done.
type plan struct {
	units  []*node         // each is one rename, with all that is below
	dirs   []*node         // directories that only get another mode or attributes
	stay   map[at]bool     // directories in which a change is not made
	modes  map[at]bool     // directories that the command may have opened or closed
	times  []layer.Touched // directories of which the time may be set
	forced map[at]bool     // conflicts that were decided for what the command wrote
	ours   []layer.Change  // conflicts that are decided for what is there
	res    Result          // Applied is 0
	total  int             // changes in units and dirs
}

// comes and goes say whether a directory appears or disappears.
func comes(c *layer.Change) bool { return c.Op != layer.Remove && c.Type.IsDir() && !wasDir(c) }
func goes(c *layer.Change) bool  { return wasDir(c) && (c.Op == layer.Remove || !c.Type.IsDir()) }

func wasDir(c *layer.Change) bool {
	if c.Was == nil {
		return c.Op == layer.Remove && c.Type.IsDir()
	}
	return c.Was.Mode.IsDir()
}

// newPlan decides which changes are made, and which of them in one step.
func newPlan(changes []layer.Change, touched []layer.Touched, trees []layer.Tree, o Options) *plan {
	p := &plan{stay: map[at]bool{}, modes: map[at]bool{}, forced: map[at]bool{}}
	for i := range changes {
		if !changes[i].Declined {
			p.res.Left++
		}
	}
	take := chosen(changes, trees, o)
	for i := range changes {
		take[i] = take[i] && p.takes(&changes[i], trees, o)
	}
	p.keepWhole(changes, take)
	nodes := make(map[at]*node) // directories of which the changes below are not made on their own
	for i := range changes {
		c := &changes[i]
		p.modes[place(c)] = c.Op == layer.Modify && c.Type.IsDir()
		n := &node{Change: c, whole: comes(c) || goes(c), count: 1}
		above := nodes[place(c).above()]
		n.not = !take[i] || above != nil && above.not
		if n.whole && (!n.not || c.Op != layer.Remove) {
			nodes[place(c)] = n
		}
		switch {
		case n.not:
			p.stay[place(c).above()] = true
		case above != nil:
			above.below = append(above.below, n)
		case c.Op == layer.Modify && c.Type.IsDir() && !n.whole:
			p.dirs = append(p.dirs, n)
		default:
			p.units = append(p.units, n)
		}
	}
	for _, n := range p.units {
		p.total += n.sum()
	}
	p.total += len(p.dirs)
	for _, t := range touched {
		if o.Paths == nil || among(o.Paths, filepath.Join(trees[t.Tree].Path, t.Path)) {
			p.times = append(p.times, t)
		}
	}
	return p
}

// sum counts the changes of a unit.
func (n *node) sum() int {
	for _, b := range n.below {
		n.count += b.sum()
	}
	return n.count
}

// chosen says which changes the options mean, with the new directories that these are in.
func chosen(changes []layer.Change, trees []layer.Tree, o Options) []bool {
	out := make([]bool, len(changes))
	needed := make(map[at]bool)
	for i := len(changes) - 1; i >= 0; i-- {
		c := &changes[i]
		full := filepath.Join(trees[c.Tree].Path, c.Path)
		named := o.Paths == nil || among(o.Paths, full)
		out[i] = named && (o.Only == nil || o.Only(c)) || needed[place(c)] && comes(c)
		if out[i] {
			needed[place(c).above()] = true
		}
	}
	return out
}

// takes reports whether a chosen change is to be made, as far as that can be said without the others.
func (p *plan) takes(c *layer.Change, trees []layer.Tree, o Options) bool {
	full := filepath.Join(trees[c.Tree].Path, c.Path)
	conflict := c.Conflict != ""
	if c.Declined {
		return false
	}
	if c.Refused != "" {
		p.res.Refused = append(p.res.Refused, *c)
		return false
	}
	if conflict && among(o.Ours, full) {
		p.decline(c)
		return false
	}
	if conflict && !among(o.Theirs, full) {
		p.res.Conflicts = append(p.res.Conflicts, *c)
		return false
	}
	p.forced[place(c)] = conflict
	return true
}

// decline leaves what is there in place of a change.
func (p *plan) decline(c *layer.Change) {
	p.ours = append(p.ours, *c)
	p.res.Left--
}

// among reports whether a path is one of some others or below one.
func among(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return name == p || strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/")
	})
}

// keepWhole leaves directories that would go although something in them stays. If all of that was decided so, it
// is decided for the directory.
func (p *plan) keepWhole(changes []layer.Change, take []bool) {
	decided := make(map[at]bool)
	for i := range p.ours {
		decided[place(&p.ours[i])] = true
	}
	stays := make(map[at]bool)
	open := make(map[at]bool) // something stays of which that was not decided
	for i := len(changes) - 1; i >= 0; i-- {
		c := &changes[i]
		here := place(c)
		if take[i] && goes(c) && stays[here] {
			take[i] = false
			decided[here] = !open[here]
			if open[here] {
				p.conflict(c, "something in it stays")
			} else {
				p.decline(c)
			}
		}
		if !take[i] {
			stays[here.above()] = true
			open[here.above()] = open[here.above()] || !c.Declined && !decided[here]
		}
	}
}

func (p *plan) conflict(c *layer.Change, why string) {
	named := *c
	named.Conflict = why
	p.res.Conflicts = append(p.res.Conflicts, named)
}
