package learn

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

const everything = policy.Read | policy.Write | policy.Exec // as a build tree needs

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
func (p *proposer) rules(needs []Need) (rules []Proposal) {
	project := p.sensible(p.r.Dir, policy.Read, false)
	var dirs []string
	for _, n := range needs {
		q, up := Proposal{Need: Need{Path: n.Path, Dir: n.Dir, Access: n.Access | policy.Read}, Needs: []Need{n}}, path.Dir(n.Path)
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
		rules = with(rules, q)
		for dir := q.Path; dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for _, dir := range slices.Compact(dirs) {
		rules = p.lift(rules, dir)
	}
	slices.SortFunc(rules, func(a, b Proposal) int { return cmp.Compare(a.Path, b.Path) })
	return rules
}

// with adds a rule to others: those for one path are one.
func with(rules []Proposal, q Proposal) []Proposal {
	i := slices.IndexFunc(rules, func(o Proposal) bool { return o.Path == q.Path })
	if i < 0 {
		return append(rules, q)
	}
	rules[i].add(q)
	return rules
}

// add has a rule allow what another one does.
func (q *Proposal) add(o Proposal) {
	q.Access, q.Dir, q.Needs = q.Access|o.Access, q.Dir || o.Dir, append(q.Needs, o.Needs...)
}

// creates reports whether the rule is for a directory that is missing.
func (q *Proposal) creates() bool {
	return slices.ContainsFunc(q.Needs, func(n Need) bool { return n.Change && n.Dir && n.Path == q.Path })
}

// lift makes a rule of a directory where at least two entries are written, or three
// paths below are only read. One that is a rule takes in what lies below: all of it
// where it is written to, else what needs no more than it has.
func (p *proposer) lift(rules []Proposal, dir string) []Proposal {
	q, all := Proposal{Need: Need{Path: dir}}, policy.Access(0)
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
	if !many && !q.Dir {
		return rules
	}
	q.Dir, many = true, many || q.Access&policy.Write != 0
	rules = slices.DeleteFunc(rules, func(c Proposal) bool {
		in := policy.Within(c.Path, dir) && (many || c.Access&^q.Access == 0)
		if in && c.Path != dir {
			q.add(c)
		}
		return in
	})
	return append(rules, q)
}

// Narrower gives what a proposal for a directory is made of, one level down; nil
// where there is nothing narrower.
func (q *Proposal) Narrower() (all []Proposal) {
	for _, n := range q.Needs {
		name, deep, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(n.Path, q.Path), "/"), "/")
		dir := n.Dir || deep != ""
		if !q.Dir || name == "" || n.Change && !dir {
			return nil // the directory itself is what was used
		}
		all = with(all, Proposal{Need: Need{Path: path.Join(q.Path, name), Access: n.Access | policy.Read, Dir: dir}, Needs: []Need{n}})
	}
	return all
}

// Wider gives the same rule for the directory above, and reports whether that may be
// proposed.
func (q *Proposal) Wider(r *policy.Resolved) (Proposal, bool) {
	up := *q
	up.Path, up.Dir = path.Dir(q.Path), true
	return up, q.Key == "" && q.Preset == "" && q.Path != r.Dir && newProposer(r, false).sensible(up.Path, q.Access, false)
}
