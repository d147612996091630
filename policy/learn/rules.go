package learn

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// everything is what a build tree needs.
const everything = policy.Read | policy.Write | policy.Exec

// shared are directories that many programs have their files in: none is a rule,
// though what lies in it may be.
func shared(r *policy.Resolved, h *policy.Host) []string {
	dirs := []string{"/tmp", "/var/tmp", "/private", "/dev", "/dev/shm"}
	home := h.Follow(r.Home).Path
	for _, d := range []string{".cache", ".config", ".local", "Library", "bin"} {
		dirs = append(dirs, home+"/"+d)
	}
	for _, v := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		if d := h.Getenv(v); path.IsAbs(d) {
			dirs = append(dirs, h.Follow(d).Path)
		}
	}
	return dirs
}

// sensible reports whether a directory as a whole may be a rule with an access.
func (p *proposer) sensible(dir string, a policy.Access) bool {
	key := dirAccess{dir, a & policy.Write}
	good, ok := p.good[key]
	if !ok {
		good = p.unwise(dir, a, true) == "" && !p.wide(dir)
		p.good[key] = good
	}
	return good
}

// wide reports whether a directory holds more than one thing: the home directory and
// what lies above it, those near the root, and the shared ones and what holds them.
func (p *proposer) wide(dir string) bool {
	home := p.h.Follow(p.r.Home).Path
	if p.r.Home != "" && (policy.Within(home, dir) || policy.Within(p.r.Home, dir)) || policy.Within(p.r.Dir, dir) && dir != p.r.Dir {
		return true
	}
	parent := path.Dir(dir)
	return parent == "/" && dir != p.r.Dir || dir == "/" ||
		slices.Contains([]string{"/usr", "/var", "/home", "/Users", "/private", "/private/var", "/run/user", home + "/.local", home + "/Library"}, parent) ||
		slices.ContainsFunc(p.shared, func(s string) bool { return policy.Within(s, dir) })
}

// whole reports whether the working directory may be a rule as a whole.
func (p *proposer) whole() bool {
	return !p.wide(p.r.Dir) && p.unwise(p.r.Dir, policy.Read, true) == ""
}

// project makes one rule of all that lies in the working directory, and returns the
// rest.
func (p *proposer) project(needs []Need) []Need {
	if !p.whole() {
		return needs
	}
	q := Proposal{Path: p.r.Dir, Dir: true}
	rest := slices.DeleteFunc(needs, func(n Need) bool {
		in := policy.Within(n.Path, p.r.Dir) && n.Harmless == ""
		if in {
			q.Access |= n.Access | policy.Read
			q.Needs = append(q.Needs, n)
		}
		return in
	})
	if q.Access&policy.Write != 0 {
		q.Access = everything // what is built is run
	}
	if q.Needs != nil {
		p.out = append(p.out, q)
	}
	return rest
}

// node is a path that a rule may be for, or that has some below it.
type node struct {
	access policy.Access
	create bool
	dir    bool
	rule   bool
	needs  []Need
	below  map[string]*node
}

// rules makes rules for files: first the directories that something is made in, then
// from the bottom up those that hold much of what was refused.
func (p *proposer) rules(needs []Need) {
	root := &node{below: make(map[string]*node)}
	for _, n := range needs {
		if n.Harmless != "" {
			p.out = append(p.out, Proposal{Path: n.Path, Access: n.Access | policy.Read, Dir: n.Dir, Harmless: n.Harmless, Needs: []Need{n}})
			continue
		}
		at, dir := n.Path, n.Dir
		if n.Change && p.sensible(path.Dir(at), n.Access) {
			at, dir = path.Dir(at), true
		} else if n.Change && (!n.Dir || !p.sensible(at, n.Access)) {
			p.left = append(p.left, Left{n, path.Dir(at) + " is too much for a rule: make it first, then it can be allowed"})
			continue
		} else if dir && !p.sensible(at, n.Access) {
			p.left = append(p.left, Left{n, "it is too much for a rule"})
			continue
		}
		t := root.at(at)
		t.rule, t.dir, t.access = true, t.dir || dir, t.access|n.Access|policy.Read
		t.create = t.create || dir && n.Access&policy.Write != 0
		t.needs = append(t.needs, n)
	}
	p.lift(root, "/")
	p.emit(root, "/")
}

func (t *node) at(p string) *node {
	for name := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if name == "" {
			continue
		}
		if t.below[name] == nil {
			t.below[name] = &node{below: make(map[string]*node)}
		}
		t = t.below[name]
	}
	return t
}

// lift makes a rule of a directory where at least two entries, and half of those used,
// are written, or three paths below are only read. It returns how many of these are
// left.
func (p *proposer) lift(t *node, at string) (read int) {
	rules, written := 0, 0
	for _, name := range slices.Sorted(maps.Keys(t.below)) {
		c := t.below[name]
		read += p.lift(c, path.Join(at, name))
		if c.rule {
			rules++
			written += bit(c.access&policy.Write != 0)
		}
	}
	many := written >= 2 && 2*written >= rules || read >= 3
	if many && !p.sensible(at, t.all()) {
		many = false
	}
	if t.rule && t.dir || many {
		if t.absorb(many || t.access&policy.Write != 0); len(t.below) == 0 {
			read = 0
		}
	}
	return read + bit(t.rule && t.access&policy.Write == 0)
}

// all is the access of a node and of what lies below it.
func (t *node) all() policy.Access {
	a := t.access
	for _, c := range t.below {
		a |= c.all()
	}
	return a
}

// absorb makes a node a rule for what lies below it: for all, or for what needs no
// more than the node itself has.
func (t *node) absorb(whole bool) {
	for _, name := range slices.Sorted(maps.Keys(t.below)) {
		c := t.below[name]
		if c.absorb(whole); len(c.below) > 0 || !whole && c.access&^t.access != 0 {
			continue
		}
		t.access |= c.access
		t.create = t.create || c.create
		t.needs = append(t.needs, c.needs...)
		t.rule, t.dir = true, true
		delete(t.below, name)
	}
}

func (p *proposer) emit(t *node, at string) {
	if t.rule {
		p.out = append(p.out, Proposal{Path: at, Access: t.access, Create: t.create && t.dir, Dir: t.dir, Needs: t.needs})
	}
	for _, name := range slices.Sorted(maps.Keys(t.below)) {
		p.emit(t.below[name], path.Join(at, name))
	}
}

// Narrower gives what a proposal for a directory is made of, one level down; nil
// where there is nothing narrower.
func (q *Proposal) Narrower() []Proposal {
	if !q.Dir || q.Socket || q.Preset != "" {
		return nil
	}
	by := make(map[string]*Proposal)
	for _, n := range q.Needs {
		name, deep, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(n.Path, q.Path), "/"), "/")
		dir := n.Dir || deep != ""
		if name == "" || n.Change && !dir {
			return nil // the directory itself is what was used
		}
		at := path.Join(q.Path, name)
		if by[at] == nil {
			by[at] = &Proposal{Path: at, Access: policy.Read}
		}
		c := by[at]
		c.Access, c.Dir, c.Needs = c.Access|n.Access, c.Dir || dir, append(c.Needs, n)
		c.Create = c.Dir && c.Access&policy.Write != 0
	}
	var out []Proposal
	for _, at := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[at])
	}
	return out
}

// Wider gives the same rule for the directory above, and reports whether that may be
// proposed.
func (q *Proposal) Wider(r *policy.Resolved, h *policy.Host) (Proposal, bool) {
	p := &proposer{r: r, h: h, unwise: r.Unwise(), good: make(map[dirAccess]bool), shared: shared(r, h)}
	up := *q
	up.Path, up.Dir, up.Create = path.Dir(q.Path), true, q.Access&policy.Write != 0
	return up, !q.Socket && q.Path != "" && q.Path != r.Dir && p.sensible(up.Path, q.Access)
}
