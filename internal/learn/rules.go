package learn

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

const everything = policy.Read | policy.Write | policy.Exec // as a build tree needs

// sensible reports whether a rule with access a may open all of a directory: it is not too
// wide, and changes nothing of another project.
func (p *proposer) sensible(dir string, a policy.Access, itself bool) bool {
	return p.narrow(dir, a, itself) && (a&policy.Write == 0 || p.foreign(dir, true) == "")
}

// narrow reports whether a rule with access a for a directory is not too wide. It may not
// be the home directory, a shared one, one above these, or one near the root. itself says
// that the directory itself was refused, or was to be changed. A user who asks about it
// then gets a rule to read a shared one, and a rule for one near the root.
func (p *proposer) narrow(dir string, a policy.Access, itself bool) bool {
	holds := func(d string) bool { return host.Within(d, dir) }
	asked := p.asked && itself
	if dir == "/" || p.r.Home != "" && (holds(p.home) || holds(p.r.Home)) {
		return false
	}
	if slices.ContainsFunc(p.shared, holds) && (!asked || a&policy.Write != 0) {
		return false
	}
	ofProject := dir == p.r.Dir || dir == p.tree
	if !ofProject && holds(p.r.Dir) {
		return false
	}
	parent := path.Dir(dir)
	if !asked && (!ofProject && parent == "/" || slices.Contains(p.crowded(), parent)) {
		return false
	}
	return p.unwise(dir, a, true) == ""
}

// crowded returns directories that have many other directories in them, each of another program or
// user.
func (p *proposer) crowded() []string {
	return []string{
		"/usr", "/var", "/home", "/Users", "/private", "/private/var", "/run/user",
		p.home + "/.local", p.home + "/Library",
	}
}

// foreign returns why writing to a path would change what belongs to another project, or "".
func (p *proposer) foreign(at string, dir bool) string {
	if host.Within(at, p.r.Dir) || host.Within(at, p.tree) {
		return ""
	}
	if why := p.others(at, dir); why != "" {
		return why
	}
	h := p.r.Host()
	if top := h.Repository(at); top != "" {
		return top + " is another project"
	}
	if dir && h.Holds(at) != "" {
		return "other projects are in " + at
	}
	return ""
}

// rules makes rules for files: one for all that is in the working directory, one for all of
// the repository around it, since a member of a workspace needs the other members, then for
// the directories in which something is made, then from the bottom up for those below which
// much was refused.
func (p *proposer) rules(needs []Need) (rules []Proposal) {
	var dirs []string
	for _, n := range needs {
		q, why := p.ruleFor(n)
		if why != "" {
			n.Why = why
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

// ruleFor returns the rule for a file, or why there is none.
func (p *proposer) ruleFor(n Need) (q Proposal, why string) {
	write := n.Access&policy.Write != 0
	if write {
		if why := p.foreign(n.Path, n.Dir); why != "" {
			return Proposal{}, why
		}
	}
	if top := p.top(n); top != "" {
		q = rule(n, top, true)
		if write {
			q.Access = everything // what is built is run
		}
		return q, ""
	}
	if repo := p.repository(n); repo != "" {
		q = rule(n, repo, true)
		if git := p.r.UnprovedGit(); git.Dir == repo {
			q.Access |= git.Access
		}
		return q, ""
	}
	up := path.Dir(n.Path)
	if n.Change && n.Dir && p.missing(up) && p.sensible(n.Path, n.Access, true) {
		return rule(n, n.Path, n.Dir), "" // zsbx makes the directory and the one above
	}
	if n.Change && p.sensible(up, n.Access, !n.Dir) {
		q = rule(n, up, true)
		q.Change = p.missing(up)
		return q, ""
	}
	if n.Change && !n.Dir || n.Dir && !p.sensible(n.Path, n.Access, true) {
		return Proposal{}, "a rule for its directory would open too much: make it first, then it can be allowed"
	}
	return rule(n, n.Path, n.Dir), ""
}

// missing reports whether there is nothing at a path.
func (p *proposer) missing(at string) bool {
	return p.r.Host().Look(at).Presence == host.Absent
}

// top returns the working directory or the repository around it, if a need is in it and a
// rule may open all of it, or "". The user chose the working directory, not what is above:
// that may be what is on PATH, or settings that programs outside execute, such as ~/.vim.
func (p *proposer) top(n Need) string {
	switch {
	case host.Within(n.Path, p.r.Dir) && p.sensible(p.r.Dir, policy.Read, false):
		return p.r.Dir
	case host.Within(n.Path, p.tree) && p.sensible(p.tree, n.Access, false):
		return p.tree
	}
	return ""
}

// repository returns the git directory that a need is in, or "". git gives up at the first
// refused file in it, and needs them all.
func (p *proposer) repository(n Need) (repo string) {
	git := p.r.UnprovedGit()
	if git.Dir != "" && host.Within(n.Path, git.Dir) && p.sensible(git.Dir, git.Access, true) {
		return git.Dir
	}
	for dir := path.Dir(n.Path); dir != "/"; dir = path.Dir(dir) {
		if strings.HasSuffix(dir, ".git") && p.sensible(dir, n.Access, true) {
			if p.r.Host().Look(dir+"/HEAD").Presence == host.Present {
				repo = dir
			}
		}
	}
	return repo
}

// rule returns a rule for a need: for its path, or for a directory above it. A missing
// directory is to be made.
func rule(n Need, at string, dir bool) Proposal {
	about := Need{
		Path:   at,
		Access: n.Access | policy.Read,
		Dir:    dir,
		Change: n.Change && n.Dir && n.Path == at,
	}
	return Proposal{Need: about, Needs: []Need{n}}
}

// with adds a rule to others. Rules for the same path become one.
func with(rules []Proposal, q Proposal) []Proposal {
	i := slices.IndexFunc(rules, func(o Proposal) bool { return o.Path == q.Path })
	if i < 0 {
		return append(rules, q)
	}
	rules[i].add(q)
	return rules
}

// add makes a rule allow what another one does, too.
func (q *Proposal) add(o Proposal) {
	q.Change = q.Change || o.Change && o.Path == q.Path
	q.Access |= o.Access
	q.Dir = q.Dir || o.Dir
	q.Needs = append(q.Needs, o.Needs...)
}

// lift makes a rule for a directory of which at least two entries are written, or below
// which at least three paths are only read. The rule for a directory takes in the rules
// below it: all of them if it is written to, and otherwise those that need no more access.
func (p *proposer) lift(rules []Proposal, dir string) []Proposal {
	q := Proposal{Need: Need{Path: dir}}
	all := policy.Access(0)
	written := 0
	read := 0
	for _, c := range rules {
		if !host.Within(c.Path, dir) {
			continue
		}
		all |= c.Access
		switch {
		case c.Path == dir:
			q = c
		case c.Access&policy.Write == 0:
			read++
		case path.Dir(c.Path) == dir:
			written++
		}
	}
	many := (written >= 2 || read >= 3) && p.sensible(dir, all, false)
	if !many && !q.Dir {
		return rules
	}
	q.Dir = true
	many = many || q.Access&policy.Write != 0
	rules = slices.DeleteFunc(rules, func(c Proposal) bool {
		in := host.Within(c.Path, dir) && (many || c.Access&^q.Access == 0)
		if in && c.Path != dir {
			q.add(c)
		}
		return in
	})
	return append(rules, q)
}

// Narrower splits a proposal for a directory into those one level down. It returns the
// proposal itself if there is nothing narrower.
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

// Wider returns the same rule for the directory above, or the proposal itself if that may
// not be proposed.
func (q *Proposal) Wider(r *resolve.Resolved) Proposal {
	up := *q
	up.Path = path.Dir(q.Path)
	up.Dir = true
	up.Change = false
	if q.Key != "" || q.Preset != "" || q.Path == r.Dir || !newProposer(r, false).sensible(up.Path, q.Access, false) {
		return *q
	}
	return up
}
