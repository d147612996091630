package learn

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// everything is what a build tree needs.
const everything = policy.Read | policy.Write | policy.Exec

// sharedDirs are directories that many programs have their files in: none is a rule,
// though what lies in it may be.
func (p *proposer) sharedDirs() []string {
	h := p.r.Host()
	dirs := []string{"/tmp", "/var/tmp", "/private", "/dev", "/dev/shm"}
	for _, d := range []string{".cache", ".config", ".local", "Library", "bin"} {
		dirs = append(dirs, p.home+"/"+d)
	}
	for _, v := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		if d := h.Getenv(v); path.IsAbs(d) {
			dirs = append(dirs, h.Follow(d).Path)
		}
	}
	return dirs
}

// sensible reports whether a directory as a whole may be a rule with an access: never
// the home directory and what lies above it, nor a shared one, nor one near the root,
// nor what holds those. Itself says that it is what was refused, or changed by what
// was: somebody who asks is told of a shared one, to read it, and of one near the root.
func (p *proposer) sensible(dir string, a policy.Access, itself bool) bool {
	holds := func(d string) bool { return policy.Within(d, dir) }
	parent, asked := path.Dir(dir), p.asked && itself
	switch {
	case dir == "/", p.r.Home != "" && (holds(p.home) || holds(p.r.Home)):
		return false
	case slices.ContainsFunc(p.shared, holds) && (!asked || a&policy.Write != 0):
		return false
	case dir != p.r.Dir && (parent == "/" || holds(p.r.Dir)) && !asked:
		return false
	case slices.Contains([]string{"/usr", "/var", "/home", "/Users", "/private", "/private/var", "/run/user", p.home + "/.local", p.home + "/Library"}, parent) && !asked:
		return false
	}
	return p.unwise(dir, a, true) == ""
}

// rules makes rules for files: one for all that lies in the working directory, then for
// the directories that something is made in, then from the bottom up for those that
// hold much of what was refused.
func (p *proposer) rules(needs []Need) (out []Proposal) {
	project := p.sensible(p.r.Dir, policy.Read, false)
	var rules []*Proposal
	var dirs []string
	for _, n := range needs {
		q := &Proposal{Need: Need{Path: n.Path, Dir: n.Dir, Access: n.Access | policy.Read}, Needs: []Need{n}}
		up := path.Dir(n.Path)
		switch {
		case project && policy.Within(n.Path, p.r.Dir):
			q.Path, q.Dir = p.r.Dir, true
			if n.Access&policy.Write != 0 {
				q.Access = everything // what is built is run
			}
		case n.Change && p.sensible(up, n.Access, !n.Dir):
			q.Path, q.Dir = up, true
		case n.Change && !n.Dir, n.Dir && !p.sensible(n.Path, n.Access, true):
			p.left = append(p.left, Left{n, "its directory is too much for a rule: make it first, then it can be allowed"})
			continue
		}
		if i := slices.IndexFunc(rules, func(o *Proposal) bool { return o.Path == q.Path }); i >= 0 {
			rules[i].add(q)
			continue
		}
		rules = append(rules, q)
		for dir := q.Path; dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for _, dir := range slices.Compact(dirs) {
		rules = p.lift(rules, dir)
	}
	for _, q := range rules {
		out = append(out, *q)
	}
	slices.SortFunc(out, func(a, b Proposal) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// add has a rule allow what another one does.
func (q *Proposal) add(o *Proposal) {
	q.Access, q.Dir, q.Needs = q.Access|o.Access, q.Dir || o.Dir, append(q.Needs, o.Needs...)
}

// creates reports whether the rule is for a directory that is missing.
func (q *Proposal) creates() bool {
	return slices.ContainsFunc(q.Needs, func(n Need) bool { return n.Change && n.Dir && n.Path == q.Path })
}

// lift makes a rule of a directory where at least two entries are written, or three
// paths below are only read. One that is a rule takes in what lies below: all of it
// where it is written to, else what needs no more than it has.
func (p *proposer) lift(rules []*Proposal, dir string) []*Proposal {
	var q *Proposal
	var all policy.Access
	written, read := 0, 0
	for _, c := range rules {
		switch {
		case c.Path == dir:
			q = c
		case !policy.Within(c.Path, dir):
			continue
		case c.Access&policy.Write == 0:
			read++
		case path.Dir(c.Path) == dir:
			written++
		}
		all |= c.Access
	}
	many := (written >= 2 || read >= 3) && p.sensible(dir, all, false)
	switch {
	case !many && (q == nil || !q.Dir):
		return rules
	case q == nil:
		q = &Proposal{Need: Need{Path: dir}}
		rules = append(rules, q)
	}
	q.Dir, many = true, many || q.Access&policy.Write != 0
	return slices.DeleteFunc(rules, func(c *Proposal) bool {
		below := c != q && policy.Within(c.Path, dir) && (many || c.Access&^q.Access == 0)
		if below {
			q.add(c)
		}
		return below
	})
}

// Narrower gives what a proposal for a directory is made of, one level down; nil
// where there is nothing narrower.
func (q *Proposal) Narrower() (out []Proposal) {
	if !q.Dir {
		return nil
	}
	for _, n := range q.Needs {
		name, deep, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(n.Path, q.Path), "/"), "/")
		c := Proposal{Need: Need{Path: path.Join(q.Path, name), Access: n.Access | policy.Read, Dir: n.Dir || deep != ""}, Needs: []Need{n}}
		if name == "" || n.Change && !c.Dir {
			return nil // the directory itself is what was used
		}
		if i := slices.IndexFunc(out, func(o Proposal) bool { return o.Path == c.Path }); i >= 0 {
			out[i].add(&c)
		} else {
			out = append(out, c)
		}
	}
	return out
}

// Wider gives the same rule for the directory above, and reports whether that may be
// proposed.
func (q *Proposal) Wider(r *policy.Resolved) (Proposal, bool) {
	up := *q
	up.Path, up.Dir = path.Dir(q.Path), true
	return up, q.Key == "" && q.Preset == "" && q.Path != r.Dir && newProposer(r).sensible(up.Path, q.Access, false)
}
