package mounts

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/policy"
)

// HomeIn is the directory below a temporary one that becomes a private home.
func HomeIn(temp string) string { return temp + "/.home" }

// maxBack bounds what is mounted in a private home: each path takes a descriptor
// while that is made.
const maxBack = 300

// home makes the home directory private: a directory below the temporary one is
// put onto it, and onto that what the policy allows there. It says why it can't
// although the policy asks for it, or "". The command has all rights but those for
// devices in it; what is denied in what is mounted there has been masked (see
// deny.Request.Private).
func (q *Request) home(mp *Plan) string {
	r := q.Policy
	if !r.Private.Home.Is() || q.NoHome != "" {
		return q.NoHome
	}
	home, why := PrivateHome(r, q.Host)
	if why = cmp.Or(why, q.openSocket(home)); why != "" {
		return why
	}
	const all = policy.Read | policy.Write | policy.Exec
	d := PrivateDir{Path: home, Kind: bind, From: HomeIn(r.TempDir), Rights: landlock.Rights(all, home, fs.ModeDir, q.Handled)}
	if st, err := q.Host.Lstat(d.From); err != nil || !st.Mode.IsDir() {
		return d.From + " is no directory that could take its place"
	}
	var inside []deny.Tree
	for _, t := range q.Trees {
		within := policy.Within(t.Path, home)
		switch {
		case policy.Within(home, t.Path):
			return fmt.Sprintf("all of it is allowed by %s (%s)", t.Path, t.Origin)
		case within && t.Access&policy.Read == 0:
			return fmt.Sprintf("%s (%s) is not to be read", t.Path, t.Origin)
		case within:
			inside = append(inside, t)
		}
	}
	q.keep(&d, inside)
	if len(d.Back) > maxBack {
		return fmt.Sprintf("%d paths in it are allowed, more than %d", len(d.Back), maxBack)
	}
	if policy.Within(r.Dir, home) && !d.inBack(r.Dir) {
		d.Dirs = append(d.Dirs, r.Dir)
	}
	mp.Private = append(mp.Private, d)
	return ""
}

// PrivateHome is the directory that a private home would take the place of, or
// why there is none.
func PrivateHome(r *policy.Resolved, host *policy.Host) (home, why string) {
	if r.Home == "" || r.TempDir == "" {
		return "", "there is no home directory, or no temporary one that could take its place"
	}
	home, st, err := host.RealPath(r.Home)
	switch {
	case err != nil:
		return "", err.Error()
	case !st.Mode.IsDir():
		return "", home + " is no directory"
	case home == "/" || slices.Contains(tmpDirs(), home):
		return "", home + " is no home directory"
	}
	return home, ""
}

// keep finds what stays in a private directory: trees, unless one around has as many
// rights, which it has, too; the sockets that may be connected to, and the links by
// which rules were named.
func (q *Request) keep(d *PrivateDir, trees []deny.Tree) {
	r := q.Policy
	slices.SortStableFunc(trees, func(a, b deny.Tree) int { return landlock.ComparePaths(a.Path, b.Path) })
	for _, t := range trees {
		b := Back{Path: t.Path, Dir: t.Mode.IsDir(), ID: t.ID, ReadOnly: t.Access&policy.Write == 0, NoExec: t.Access&policy.Exec == 0, Bare: true}
		var around *Back
		for i := range d.Back {
			if policy.Within(b.Path, d.Back[i].Path) {
				around = &d.Back[i]
			}
		}
		if around != nil {
			b.ReadOnly, b.NoExec, b.Bare = b.ReadOnly && around.ReadOnly, b.NoExec && around.NoExec, false
		}
		switch {
		case around == nil || around.Path != b.Path && (b.ReadOnly != around.ReadOnly || b.NoExec != around.NoExec):
			d.Back = append(d.Back, b)
		case around.Path == b.Path:
			around.ReadOnly, around.NoExec = b.ReadOnly, b.NoExec
		}
	}
	for _, s := range r.Net.Unix {
		if policy.Within(s.Path, d.Path) && !d.inBack(s.Path) {
			d.Back = append(d.Back, Back{Path: s.Path, ID: s.ID, ReadOnly: d.Kind == bind, NoExec: d.Kind == bind, Bare: true})
		}
	}
	for _, p := range slices.Concat(r.Paths, r.Net.Unix) {
		for _, l := range p.Links {
			has := slices.ContainsFunc(d.Links, func(o Link) bool { return o.Path == l })
			if has || !policy.Within(l, d.Path) || d.inBack(path.Dir(l)) {
				continue
			}
			if to, err := q.Host.Readlink(l); err == nil {
				d.Links = append(d.Links, Link{l, to})
			}
		}
	}
	slices.SortFunc(d.Back, func(a, b Back) int { return landlock.ComparePaths(a.Path, b.Path) })
}

// inBack reports whether a path lies in something that is mounted there.
func (d *PrivateDir) inBack(p string) bool {
	return slices.ContainsFunc(d.Back, func(b Back) bool { return policy.Within(p, b.Path) })
}

// stubs are the directories that have to be made in a private one for what lies
// in it, the outer ones first.
func (d *PrivateDir) stubs() []string {
	var out []string
	add := func(p string) {
		for p = path.Dir(p); p != d.Path && policy.Within(p, d.Path); p = path.Dir(p) {
			out = append(out, p)
		}
	}
	for _, b := range d.Back {
		if b.Bare {
			add(b.Path)
		}
	}
	for _, dir := range d.Dirs {
		add(dir)
	}
	for _, l := range d.Links {
		add(l.Path)
	}
	slices.SortFunc(out, landlock.ComparePaths)
	return slices.Compact(out)
}

// Stubs are the files and directories that are made in a private directory for what
// is mounted there, without those: what else is in it, the command made.
func (d *PrivateDir) Stubs() []string {
	out := append(d.stubs(), d.Dirs...)
	for _, b := range d.Back {
		out = append(out, b.Path)
	}
	for _, l := range d.Links {
		out = append(out, l.Path)
	}
	return out
}

// Home is the private home directory, nil for none.
func (mp *Plan) Home() *PrivateDir {
	if mp == nil {
		return nil
	}
	i := slices.IndexFunc(mp.Private, func(d PrivateDir) bool { return d.Kind == bind })
	if i < 0 {
		return nil
	}
	return &mp.Private[i]
}

// PrivateIn is the private directory of files that a path lies in, "" for none: what
// is there outside, the command does not see.
func (mp *Plan) PrivateIn(p string) string {
	if mp == nil {
		return ""
	}
	for _, d := range mp.Private {
		if (d.Kind == tmpfs || d.Kind == bind) && policy.Within(p, d.Path) && !d.inBack(p) {
			return d.Path
		}
	}
	return ""
}
