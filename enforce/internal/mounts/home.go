package mounts

import (
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
// although the policy asks for it, or "".
//
// Landlock's rights are inherited through mount points: in all that is mounted there
// the command has the rights of the private home, which are all but those of
// devices. What a rule does not allow is taken back by the mount: it is
// read-only, nothing on it is executed, and what is denied has been masked
// (see deny.Request.Private). Reading can't be taken back: nothing is mounted
// that may not be read.
func (q *Request) home(mp *Plan) string {
	r := q.Policy
	if !r.Private.Home.Is() || q.NoHome != "" {
		return q.NoHome
	}
	home, why := PrivateHome(r, q.Host)
	if why != "" {
		return why
	}
	d := PrivateDir{Path: home, Kind: bind, From: HomeIn(r.TempDir)}
	if st, err := q.Host.Lstat(d.From); err != nil || !st.Mode.IsDir() {
		return "there is no directory to take its place" + because(err)
	}
	const all = policy.Read | policy.Write | policy.Exec
	d.Rights = landlock.Rights(all, home, fs.ModeDir, q.Handled)
	for _, t := range q.sorted(home) {
		switch {
		case policy.Within(home, t.Path):
			return fmt.Sprintf("all of it is allowed by %s (%s)", t.Path, t.Origin)
		case t.Access&policy.Read == 0:
			return fmt.Sprintf("%s (%s) is not to be read", t.Path, t.Origin)
		}
		d.keep(t)
	}
	q.backInto(&d)
	if len(d.Back) > maxBack {
		return fmt.Sprintf("%d paths in it are allowed, more than %d", len(d.Back), maxBack)
	}
	if policy.Within(r.Dir, home) && !slices.ContainsFunc(d.Back, func(b Back) bool { return policy.Within(r.Dir, b.Path) }) {
		d.Dirs = append(d.Dirs, r.Dir)
	}
	for _, s := range r.Net.Unix {
		if s.Mode&fs.ModeSocket == 0 && (policy.Within(s.Path, home) || policy.Within(home, s.Path)) {
			return fmt.Sprintf("%s (%s) is no socket, and would be open", s.Path, s.Rule.Origin)
		}
	}
	mp.Private = append(mp.Private, d)
	return ""
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
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

// sorted are the trees in or around a directory, the outer ones first.
func (q *Request) sorted(dir string) []deny.Tree {
	out := slices.DeleteFunc(slices.Clone(q.Trees), func(t deny.Tree) bool {
		return !policy.Within(t.Path, dir) && !policy.Within(dir, t.Path)
	})
	slices.SortStableFunc(out, func(a, b deny.Tree) int { return landlock.ComparePaths(a.Path, b.Path) })
	return out
}

// keep has a tree mounted in the private home, unless a mount around it gives
// as much already. A tree in another one has the rights of both.
func (d *PrivateDir) keep(t deny.Tree) {
	b := Back{Path: t.Path, Dir: t.Mode.IsDir(), ID: t.ID, ReadOnly: t.Access&policy.Write == 0, NoExec: t.Access&policy.Exec == 0, Bare: true}
	for i := len(d.Back) - 1; i >= 0; i-- {
		o := &d.Back[i]
		if o.Path == b.Path {
			o.ReadOnly, o.NoExec = o.ReadOnly && b.ReadOnly, o.NoExec && b.NoExec
			return
		}
		if policy.Within(b.Path, o.Path) {
			b.ReadOnly, b.NoExec, b.Bare = o.ReadOnly && b.ReadOnly, o.NoExec && b.NoExec, false
			if b.ReadOnly == o.ReadOnly && b.NoExec == o.NoExec {
				return
			}
			break
		}
	}
	d.Back = append(d.Back, b)
}

// Stubs are the files and directories that are made in a private directory for what
// is mounted there, without those: what else is in it, the command made.
func (d *PrivateDir) Stubs() []string {
	out := d.stubs()
	for _, b := range d.Back {
		out = append(out, b.Path)
	}
	for _, l := range d.Links {
		out = append(out, l.Path)
	}
	return append(out, d.Dirs...)
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

// inBack reports whether a path lies in something that is mounted there.
func (d *PrivateDir) inBack(p string) bool {
	return slices.ContainsFunc(d.Back, func(b Back) bool { return policy.Within(path.Dir(p), b.Path) })
}
