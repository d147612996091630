package learn

import (
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
	crowded := []string{"/usr", "/var", "/home", "/Users", "/private", "/private/var", "/run/user", p.home + "/.local", p.home + "/Library"}
	switch {
	case dir == "/", p.r.Home != "" && (holds(p.home) || holds(p.r.Home)),
		slices.ContainsFunc(p.shared, holds) && (!asked || a&policy.Write != 0),
		!asked && dir != p.r.Dir && (parent == "/" || holds(p.r.Dir)),
		!asked && slices.Contains(crowded, parent):
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
		q, up, repo := rule(n, n.Path, n.Dir), path.Dir(n.Path), p.repository(n)
		switch {
		case project && policy.Within(n.Path, p.r.Dir):
			q = rule(n, p.r.Dir, true)
			if n.Access&policy.Write != 0 {
				q.Access = everything // what is built is run
			}
		case repo != "":
			q = rule(n, repo, true)
		case n.Change && p.sensible(up, n.Access, !n.Dir):
			q = rule(n, up, true)
		case n.Change && !n.Dir, n.Dir && !p.sensible(n.Path, n.Access, true):
			n.Why = "its directory is too much for a rule: make it first, then it can be allowed"
			p.left = append(p.left, n)
			continue
		}
		rules = with(rules, q)
		for dir := q.Path; dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Backward(slices.Compact(dirs)) {
		rules = p.lift(rules, dir)
	}
	slices.SortFunc(rules, func(a, b Proposal) int { return strings.Compare(a.Path, b.Path) })
	return rules
}

// repository is the git directory that a need lies in, or "": git gives up at the first file
// of it that is refused, and needs them all.
func (p *proposer) repository(n Need) (repo string) {
	for dir := path.Dir(n.Path); dir != "/"; dir = path.Dir(dir) {
		if strings.HasSuffix(dir, ".git") && p.sensible(dir, n.Access, true) {
			if _, err := p.r.Host().Lstat(dir + "/HEAD"); err == nil {
				repo = dir
			}
		}
	}
	return repo
}

// rule is one for a need: for its path, or for a directory that holds it. A directory
// that is missing is to be made.
func rule(n Need, at string, dir bool) Proposal {
	return Proposal{Need: Need{Path: at, Access: n.Access | policy.Read, Dir: dir, Change: n.Change && n.Dir && n.Path == at}, Needs: []Need{n}}
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
	q.Change = q.Change || o.Change && o.Path == q.Path
	q.Access, q.Dir, q.Needs = q.Access|o.Access, q.Dir || o.Dir, append(q.Needs, o.Needs...)
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

// Narrower gives what a proposal for a directory is made of, one level down; itself where
// there is nothing narrower.
func (q *Proposal) Narrower() (all []Proposal) {
	for _, n := range q.Needs {
		name, deep, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(n.Path, q.Path), "/"), "/")
		dir := n.Dir || deep != ""
		if !q.Dir || name == "" || n.Change && !dir {
			return []Proposal{*q} // the directory itself is what was used
		}
		all = with(all, rule(n, path.Join(q.Path, name), dir))
	}
	return all
}

// Wider gives the same rule for the directory above, itself where that may not be
// proposed.
func (q *Proposal) Wider(r *policy.Resolved) Proposal {
	up := *q
	up.Path, up.Dir, up.Change = path.Dir(q.Path), true, false
	if q.Key != "" || q.Preset != "" || q.Path == r.Dir || !newProposer(r, false).sensible(up.Path, q.Access, false) {
		return *q
	}
	return up
}
