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
	d := PrivateDir{Path: home, Kind: bind, From: r.TempDir + "/.home", Rights: landlock.Rights(all, home, fs.ModeDir, q.Handled)}
	var inside []deny.Tree
	for _, t := range q.Trees {
		within := policy.Within(t.Path, home)
		if policy.Within(home, t.Path) || within && t.Access&policy.Read == 0 {
			return fmt.Sprintf("%s (%s) is around it, or not to be read", t.Path, t.Origin)
		}
		if within {
			inside = append(inside, t)
		}
	}
	q.keep(&d, inside)
	if len(d.Back) > maxBack {
		return fmt.Sprintf("%d paths in it are allowed, more than %d", len(d.Back), maxBack)
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
	case !st.Mode.IsDir() || home == "/" || slices.Contains(tmpDirs(), home):
		return "", home + " is no home directory"
	}
	return home, ""
}

// keep finds what stays in a private directory: trees, unless one around has as many
// rights, which it has, too; the sockets that may be connected to, the links by which
// rules were named, and the working directory.
func (q *Request) keep(d *PrivateDir, trees []deny.Tree) {
	r := q.Policy
	slices.SortStableFunc(trees, func(a, b deny.Tree) int { return landlock.ComparePaths(a.Path, b.Path) })
	for _, t := range trees {
		around := d.around(t.Path)
		switch {
		case around == nil:
			d.need(t.Path, t.Mode, "")
		case around.Path == t.Path:
			around.Access |= t.Access
			continue
		case t.Access&^around.Access == 0:
			continue
		default:
			t.Access |= around.Access
		}
		d.Back = append(d.Back, Back{t.Path, t.ID, t.Access})
	}
	for _, s := range r.Net.Unix {
		if policy.Within(s.Path, d.Path) && d.around(s.Path) == nil {
			d.need(s.Path, s.Mode, "")
			d.Back = append(d.Back, Back{s.Path, s.ID, 0})
		}
	}
	for _, p := range slices.Concat(r.Paths, r.Net.Unix) {
		for _, l := range p.Links {
			if !policy.Within(l, d.Path) {
				continue
			}
			if to, err := q.Host.Readlink(l); err == nil {
				d.need(l, fs.ModeSymlink, to)
			}
		}
	}
	d.need(r.Dir, fs.ModeDir, "")
	slices.SortFunc(d.Stubs, func(a, b Stub) int { return landlock.ComparePaths(a.Path, b.Path) })
}

// need has something made in the directory, and those above it.
func (d *PrivateDir) need(p string, mode fs.FileMode, to string) {
	for ; p != d.Path && policy.Within(p, d.Path) && d.around(p) == nil; p, mode, to = path.Dir(p), fs.ModeDir, "" {
		if !d.Makes(p) {
			d.Stubs = append(d.Stubs, Stub{p, mode, to})
		}
	}
}

// Makes reports whether a path is one of the Stubs.
func (d *PrivateDir) Makes(p string) bool {
	return slices.ContainsFunc(d.Stubs, func(s Stub) bool { return s.Path == p })
}

// around is the innermost of what is mounted there that a path lies in, nil for none.
func (d *PrivateDir) around(p string) *Back {
	for i := range slices.Backward(d.Back) {
		if policy.Within(p, d.Back[i].Path) {
			return &d.Back[i]
		}
	}
	return nil
}

// Home is the private home directory, nil for none.
func (mp *Plan) Home() *PrivateDir {
	if mp == nil {
		return nil
	}
	for i := range mp.Private {
		if mp.Private[i].Kind == bind {
			return &mp.Private[i]
		}
	}
	return nil
}

// PrivateIn is the private directory of files that a path lies in, "" for none: what
// is there outside, the command does not see.
func (mp *Plan) PrivateIn(p string) string {
	if mp == nil {
		return ""
	}
	for _, d := range mp.Private {
		if (d.Kind == tmpfs || d.Kind == bind) && policy.Within(p, d.Path) && d.around(p) == nil {
			return d.Path
		}
	}
	return ""
}
