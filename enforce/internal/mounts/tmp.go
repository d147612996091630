package mounts

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/policy"
)

// Back is what lies in a private directory at its own name, as it does outside.
type Back struct {
	Path string
	Dir  bool
	ID   policy.FileID // what it has to be when it is mounted

	ReadOnly bool // the mount takes the right to write back, and
	NoExec   bool // that to execute
	Bare     bool // it lies in nothing else that is mounted there, so that something has to be made for it
}

// Link is a symbolic link in a private directory that is there outside as well.
type Link struct{ Path, To string }

// tmpDirs are where programs that do not ask for TMPDIR make their files.
func tmpDirs() []string { return []string{"/tmp", "/var/tmp"} }

// tmpShare is the most that a private directory for temporary files holds, in
// percent of the machine's memory (tmpfs(5), size).
const tmpShare = 25

// tmp makes the directories for everybody's temporary files private, where the
// policy has a temporary directory, and says in words what became of them. That
// directory stays at its own name, on disk.
//
// Landlock's rights are inherited through mount points: what the rule of the
// private directory allows, it allows in all that is mounted in it. So nothing
// is but the temporary directory, which has the same rights, and sockets, which
// can't be read. Where a rule names more in it, the directory stays as it is.
func (q *Request) tmp(mp *Plan) string {
	r := q.Policy
	i := slices.IndexFunc(q.Trees, func(t deny.Tree) bool { return t.Path == r.TempDir && t.Mode.IsDir() })
	if r.TempDir == "" || i < 0 {
		return ""
	}
	var private, said []string
	for _, name := range tmpDirs() {
		dir, st, err := q.Host.RealPath(name)
		if err != nil || !st.Mode.IsDir() || slices.Contains(private, dir) {
			continue
		}
		why := q.tmpTaken(dir)
		if home := mp.Home(); why == "" && home != nil && policy.Within(home.Path, dir) {
			why = "the home directory lies there"
		}
		if slices.ContainsFunc(private, func(p string) bool { return policy.Within(p, dir) || policy.Within(dir, p) }) {
			why = "a link leads to it"
		}
		if why != "" {
			said = append(said, fmt.Sprintf("%s as outside, closed but for what is allowed: %s", name, why))
			continue
		}
		private = append(private, dir)
		d := PrivateDir{Path: dir, Kind: tmpfs, Size: tmpShare, Rights: landlock.Rights(q.Trees[i].Access, dir, fs.ModeDir, q.Handled)}
		q.backInto(&d)
		mp.Private = append(mp.Private, d)
	}
	if len(private) > 0 {
		said = append([]string{fmt.Sprintf("%s in memory, of the command's own, at most %d %% of it each; TMPDIR on disk", strings.Join(private, " and "), tmpShare)}, said...)
	}
	return strings.Join(said, "; ")
}

// sharedTmp is what tmp says where there is no namespace.
func (q *Request) sharedTmp() string {
	if q.Policy.TempDir == "" {
		return ""
	}
	return strings.Join(tmpDirs(), " and ") + " as outside, closed but for what is allowed: no mount namespace"
}

// tmpTaken says why a directory for temporary files can't be private, or "".
func (q *Request) tmpTaken(dir string) string {
	r := q.Policy
	if policy.Within(r.Dir, dir) {
		return "the working directory lies there"
	}
	for _, d := range r.Deny {
		if d.Covers(dir) {
			return fmt.Sprintf("it is denied as %s (%s)", d.Pattern, d.Deny.Origin)
		}
	}
	for _, t := range r.Paths {
		if t.Path != r.TempDir && (policy.Within(t.Path, dir) || policy.Within(dir, t.Path)) {
			return fmt.Sprintf("%s (%s)", t.Path, t.Rule.Origin)
		}
	}
	for _, s := range r.Net.Unix {
		if s.Mode&fs.ModeSocket == 0 && (policy.Within(s.Path, dir) || policy.Within(dir, s.Path)) {
			return fmt.Sprintf("%s (%s)", s.Path, s.Rule.Origin)
		}
	}
	return ""
}

// backInto finds what stays in a private directory: the temporary directory,
// the sockets that may be connected to, and the links by which rules were named.
func (q *Request) backInto(d *PrivateDir) {
	r := q.Policy
	for _, t := range q.Trees {
		if t.Path == r.TempDir && t.Path != d.Path && policy.Within(t.Path, d.Path) {
			d.back(Back{Path: t.Path, Dir: true, ID: t.ID, Bare: true})
		}
	}
	for _, s := range r.Net.Unix {
		if policy.Within(s.Path, d.Path) {
			d.back(Back{Path: s.Path, ID: s.ID, ReadOnly: d.Kind == bind, NoExec: d.Kind == bind, Bare: true})
		}
	}
	for _, paths := range [...][]policy.Path{r.Paths, r.Net.Unix} {
		for i := range paths {
			for _, l := range paths[i].Links {
				has := slices.ContainsFunc(d.Links, func(o Link) bool { return o.Path == l })
				if has || !policy.Within(l, d.Path) || d.inBack(l) {
					continue
				}
				if to, err := q.Host.Readlink(l); err == nil {
					d.Links = append(d.Links, Link{l, to})
				}
			}
		}
	}
	slices.SortFunc(d.Back, func(a, b Back) int { return landlock.ComparePaths(a.Path, b.Path) })
}

func (d *PrivateDir) back(b Back) {
	if !slices.ContainsFunc(d.Back, func(o Back) bool { return policy.Within(b.Path, o.Path) }) {
		d.Back = append(d.Back, b)
	}
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

// PrivateIn is the private directory of files that a path lies in, "" for none: what
// is there outside, the command does not see.
func (mp *Plan) PrivateIn(p string) string {
	if mp == nil {
		return ""
	}
	for _, d := range mp.Private {
		outside := slices.ContainsFunc(d.Back, func(b Back) bool { return policy.Within(p, b.Path) })
		if (d.Kind == tmpfs || d.Kind == bind) && policy.Within(p, d.Path) && !outside {
			return d.Path
		}
	}
	return ""
}
