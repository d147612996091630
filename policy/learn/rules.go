package learn

import (
	"cmp"
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
func shared(r *policy.Resolved) []string {
	h := r.Host()
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

// sensible reports whether a directory as a whole may be a rule with an access. Itself
// says that it is what was refused, or changed by what was.
func (p *proposer) sensible(dir string, a policy.Access, itself bool) bool {
	wide := p.wide(dir)
	if p.asked && itself {
		wide = p.holdsHome(dir) || a&policy.Write != 0 && p.holdsShared(dir)
	}
	return !wide && p.unwise(dir, a, true) == ""
}

// wide reports whether a directory holds more than one thing: the home directory and
// what lies above it, those near the root, and the shared ones and what holds them.
func (p *proposer) wide(dir string) bool {
	home, parent := p.r.Host().Follow(p.r.Home).Path, path.Dir(dir)
	return p.holdsHome(dir) || policy.Within(p.r.Dir, dir) && dir != p.r.Dir || parent == "/" && dir != p.r.Dir ||
		slices.Contains([]string{"/usr", "/var", "/home", "/Users", "/private", "/private/var", "/run/user", home + "/.local", home + "/Library"}, parent) ||
		p.holdsShared(dir)
}

// holdsShared reports whether a directory is one that many programs have their files in,
// or above it.
func (p *proposer) holdsShared(dir string) bool {
	return slices.ContainsFunc(p.shared, func(s string) bool { return policy.Within(s, dir) })
}

// holdsHome reports whether a directory is the home directory, or above it.
func (p *proposer) holdsHome(dir string) bool {
	return dir == "/" || p.r.Home != "" && (policy.Within(p.r.Host().Follow(p.r.Home).Path, dir) || policy.Within(p.r.Home, dir))
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
	q := Proposal{Need: Need{Path: p.r.Dir, Dir: true}}
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

// rules makes rules for files: first the directories that something is made in, then
// from the bottom up those that hold much of what was refused.
func (p *proposer) rules(needs []Need) {
	at, dirs := make(map[string]*Proposal), make(map[string]bool)
	for _, n := range needs {
		if n.Harmless != "" {
			p.out = append(p.out, Proposal{Need: n, Needs: []Need{n}})
			p.out[len(p.out)-1].Access |= policy.Read
			continue
		}
		file, dir, up := n.Path, n.Dir, path.Dir(n.Path)
		switch {
		case n.Change && (p.sensible(up, n.Access, false) || p.asked && !n.Dir && p.sensible(up, n.Access, true)):
			file, dir = up, true
		case n.Change && (!n.Dir || !p.sensible(file, n.Access, true)):
			p.left = append(p.left, Left{n, up + " is too much for a rule: make it first, then it can be allowed"})
			continue
		case dir && !p.sensible(file, n.Access, true):
			p.left = append(p.left, Left{n, "it is too much for a rule"})
			continue
		}
		if at[file] == nil {
			at[file] = &Proposal{Need: Need{Path: file}}
		}
		at[file].add(&Proposal{Need: Need{Access: n.Access | policy.Read, Dir: dir}, Create: dir && n.Access&policy.Write != 0, Needs: []Need{n}})
		for dirs[file] = true; file != "/"; dirs[file] = true {
			file = path.Dir(file)
		}
	}
	deepest := func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(b, a))
	}
	below := make(map[string][]string) // the rules in a directory and further down
	for _, dir := range slices.SortedFunc(maps.Keys(dirs), deepest) {
		up := path.Dir(dir)
		below[up] = append(below[up], p.lift(at, dir, below[dir])...)
	}
	for _, q := range at {
		p.out = append(p.out, *q)
	}
}

// add has a rule allow what another one does.
func (q *Proposal) add(o *Proposal) {
	q.Access, q.Dir, q.Create, q.Needs = q.Access|o.Access, q.Dir || o.Dir, q.Create || o.Create, append(q.Needs, o.Needs...)
}

// lift makes a rule of a directory where at least two entries, and half of those used,
// are written, or three paths below are only read. One that is a rule takes in what lies
// below: all of it, or what needs no more than it has. It returns the rules that there
// are then.
func (p *proposer) lift(at map[string]*Proposal, dir string, below []string) (left []string) {
	q, entries, written, read := at[dir], 0, 0, 0
	var all policy.Access
	for _, name := range below {
		c := at[name]
		all |= c.Access
		read += bit(c.Access&policy.Write == 0)
		entries += bit(path.Dir(name) == dir)
		written += bit(path.Dir(name) == dir && c.Access&policy.Write != 0)
	}
	if q != nil {
		all |= q.Access
	}
	many := (written >= 2 && 2*written >= entries || read >= 3) && p.sensible(dir, all, false)
	if !many && q == nil {
		return below
	}
	if !many && !q.Dir {
		return append(below, dir)
	}
	if q == nil {
		q = &Proposal{Need: Need{Path: dir}}
		at[dir] = q
	}
	q.Dir, many = true, many || q.Access&policy.Write != 0
	slices.Sort(below)
	for _, name := range below {
		if c := at[name]; many || c.Access&^q.Access == 0 {
			q.add(c)
			delete(at, name)
		} else {
			left = append(left, name)
		}
	}
	return append(left, dir)
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
			by[at] = &Proposal{Need: Need{Path: at, Access: policy.Read}}
		}
		c := by[at]
		c.add(&Proposal{Need: Need{Access: n.Access, Dir: dir}, Needs: []Need{n}})
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
func (q *Proposal) Wider(r *policy.Resolved) (Proposal, bool) {
	p := newProposer(r)
	up := *q
	up.Path, up.Dir, up.Create = path.Dir(q.Path), true, q.Access&policy.Write != 0
	return up, !q.Socket && q.Path != "" && q.Path != r.Dir && p.sensible(up.Path, q.Access, false)
}
