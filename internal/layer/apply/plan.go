package apply

import (
	"path"
	"path/filepath"
	"slices"

	"github.com/zsbx/zsbx/internal/layer"
)

// plan is what is to be done.
type plan struct {
	units []*node         // each is one rename, with all that is below
	modes []*node         // directories that only get another mode or attributes
	dirs  map[at]*node    // the directories among all changes
	stay  map[at]bool     // directories in which a change is not made
	times []layer.Touched // directories of which the time may be set
	ours  []layer.Change  // conflicts that are decided for what is there
	res   Result          // Applied is 0
	total int             // changes in units and modes
}

// node is a change.
type node struct {
	*layer.Change

	above  *node   // the change of the directory that it is in, or nil
	below  []*node // what is made in the same step
	left   []*node // what is not, of a directory that appears
	take   bool    // it is made
	forced bool    // it is a conflict that was decided for what the command wrote

	// While the plan is made.
	needed  bool // something in it is chosen
	stays   bool // something in it is not made
	open    bool // and that was not decided
	decided bool // it is decided that it is not made
	kept    bool // it stays with the directory that it is in
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
	p := &plan{dirs: map[at]*node{}, stay: map[at]bool{}}
	all := p.nodes(changes)
	p.choose(all, trees, o)
	for _, n := range all {
		n.take = n.take && p.takes(n, trees, o)
	}
	p.keepWhole(all)
	for _, n := range all {
		p.add(n)
	}
	for _, t := range touched {
		if o.Paths == nil || among(o.Paths, filepath.Join(trees[t.Tree].Path, t.Path)) {
			p.times = append(p.times, t)
		}
	}
	return p
}

func (p *plan) nodes(changes []layer.Change) (all []*node) {
	for i := range changes {
		c := &changes[i]
		n := &node{Change: c, above: p.dirs[place(c).above()]}
		if c.Type.IsDir() || wasDir(c) {
			p.dirs[place(c)] = n
		}
		if !c.Declined {
			p.res.Left++
		}
		all = append(all, n)
	}
	return all
}

// choose takes the changes that the options mean, with the new directories that these are in.
func (p *plan) choose(all []*node, trees []layer.Tree, o Options) {
	for _, n := range slices.Backward(all) {
		named := o.Paths == nil || among(o.Paths, filepath.Join(trees[n.Tree].Path, n.Path))
		n.take = named && (o.Only == nil || o.Only(n.Change)) || n.needed && comes(n.Change)
		if n.take && n.above != nil {
			n.above.needed = true
		}
	}
}

// takes reports whether a chosen change is to be made, as far as that can be said without the others.
func (p *plan) takes(n *node, trees []layer.Tree, o Options) bool {
	full := filepath.Join(trees[n.Tree].Path, n.Path)
	conflict := n.Conflict != ""
	if n.Declined {
		return false
	}
	if n.Refused != "" {
		p.res.Refused = append(p.res.Refused, *n.Change)
		return false
	}
	if conflict && among(o.Ours, full) {
		p.decline(n)
		return false
	}
	if conflict && !among(o.Theirs, full) {
		p.res.Conflicts = append(p.res.Conflicts, *n.Change)
		return false
	}
	n.forced = conflict
	return true
}

// decline leaves what is there in place of a change.
func (p *plan) decline(n *node) {
	n.decided = true
	p.ours = append(p.ours, *n.Change)
	p.res.Left--
}

// keepWhole leaves directories that would go although something in them stays. If all of that was decided so, it
// is decided for the directory.
func (p *plan) keepWhole(all []*node) {
	for _, n := range slices.Backward(all) {
		if n.take && goes(n.Change) && n.stays {
			n.take = false
			if n.open {
				p.res.leave(*n.Change, changed("something in it stays"))
			} else {
				p.decline(n)
			}
		}
		if !n.take && n.above != nil {
			n.above.stays = true
			n.above.open = n.above.open || !n.Declined && !n.decided
		}
	}
}

// add adds a change to what is done. What is in a directory that appears or disappears is made with it.
func (p *plan) add(n *node) {
	above := n.above
	whole := above != nil && (comes(above.Change) || goes(above.Change))
	if whole && !above.take {
		// A directory that stays does not keep what was removed in it, but one in whose place there was to be something
		// else keeps all.
		n.kept = above.kept || above.Op != layer.Remove
		whole = n.kept
		n.take = n.take && !n.kept
	}
	if !n.take && whole {
		above.left = append(above.left, n)
	}
	if !n.take {
		p.stay[place(n.Change).above()] = true
		return
	}
	p.total++
	switch {
	case whole:
		above.below = append(above.below, n)
	case n.Type.IsDir() && wasDir(n.Change) && n.Op == layer.Modify:
		p.modes = append(p.modes, n)
	default:
		p.units = append(p.units, n)
	}
}

// count counts the changes that are made in one step.
func (n *node) count() int {
	sum := 1
	for _, b := range n.below {
		sum += b.count()
	}
	return sum
}
