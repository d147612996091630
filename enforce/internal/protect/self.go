package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// zsbx's own files are the policies, the trust store and the records of
// sessions: by changing them a command would decide what the next one may do.
// No rule of a policy makes them writable, nor what tracking relies on. In a
// mount namespace they are read-only. Without one, a writable tree that holds
// them is taken apart as for a denial, with one difference: the directories
// between the tree and such a file stay readable, and nothing can be made in
// them or removed. What can't be held in either way is a core Gap.

// self finds which of the files lie in writable trees: under their own names,
// through links that the command could replace, and on a second mount of their
// file system.
func (c *protector) self(r *policy.Resolved, files []string) {
	if len(c.trees) == 0 || len(c.trees) == 1 && c.trees[0] == r.TempDir {
		return
	}
	c.itself = true
	c.out.Table = mounts.ReadTable(c.host)
	for _, dir := range c.out.Table.Relied() {
		if c.writable(dir) {
			c.selfPath(r, dir)
		}
	}
	for _, f := range files {
		c.selfFile(r, f)
	}
	c.itself = false
	c.out.SelfMounts, c.out.Mounts = c.out.Mounts, nil
}

// selfFile holds one file or directory by all its names.
func (c *protector) selfFile(r *policy.Resolved, file string) {
	real, links, st, err := c.host.Trail(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.unheld(file, err.Error())
		return
	}
	for _, l := range links {
		if tree := c.within(l); tree != "" && !c.seen[l] {
			c.seen[l] = true
			c.out.Self = append(c.out.Self, deny.Hit{Path: l, Dir: true})
			c.pinLink(l, tree)
		}
	}
	switch {
	case err != nil && r.OS == "macos" && c.writable(real): // a profile can deny what is not there
		c.out.Self = append(c.out.Self, deny.Hit{Path: real, Dir: true})
		return
	case err != nil:
		c.unheld(real, "it does not exist, so it can't be protected")
		return
	}
	c.selfPath(r, real)
	if st.Mode.IsRegular() && st.Nlink > 1 && st.Mode.Perm()&0o222 != 0 && c.linkable(r, st.ID) {
		c.out.SelfOpen = append(c.out.SelfOpen, SelfFact{Path: real,
			Why:  fmt.Sprintf("it has %d names (hard links), and another one may lie in a writable tree", st.Nlink),
			Hint: fmt.Sprintf("cp -p %s %[1]s.new && mv %[1]s.new %[1]s", shell.Quote(real))})
	}
	for _, other := range c.out.Table.Aliases(real) {
		if there, err := c.host.Lstat(other); err == nil && there.ID == st.ID {
			c.selfPath(r, other)
		}
	}
}

// selfPath holds one path if it lies in a writable tree, or else the writable
// trees that lie in it.
func (c *protector) selfPath(r *policy.Resolved, p string) {
	if slices.ContainsFunc(c.out.Self, func(h deny.Hit) bool { return policy.Within(p, h.Path) }) {
		return
	}
	tree := c.within(p)
	if tree != "" {
		c.out.Self = append(c.out.Self, deny.Hit{Path: p, Dir: true})
		c.add(p, tree)
	}
	for _, t := range r.Paths {
		if t.Access&policy.Write == 0 || !policy.Within(t.Path, p) {
			continue
		}
		c.out.SelfOpen = append(c.out.SelfOpen, SelfFact{Path: t.Path, Refused: true,
			Why: "no command may change what zsbx relies on", Origin: t.Rule.Origin})
		if tree == "" {
			c.out.Self = append(c.out.Self, deny.Hit{Path: t.Path, Dir: true})
			c.add(t.Path, t.Path)
		}
	}
}

// Hideable are those of some directories, there or not, that the policy does not
// name: they, or something in them, were asked for.
func Hideable(r *policy.Resolved, host *policy.Host, dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		real, _, _, err := host.Trail(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !slices.ContainsFunc(r.Paths, func(t policy.Path) bool { return policy.Within(t.Path, real) }) {
			out = append(out, real)
		}
	}
	return out
}

// linkable reports whether a writable tree is on the file system of a file, so
// that it may hold another name of it. The private temporary directory is new.
func (c *protector) linkable(r *policy.Resolved, id policy.FileID) bool {
	return slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return t.Access&policy.Write != 0 && t.ID.Dev == id.Dev && t.Path != r.TempDir && (t.Mode.IsDir() || t.Mode.IsRegular())
	})
}

func (c *protector) unheld(p, why string) {
	if c.writable(p) {
		c.out.SelfOpen = append(c.out.SelfOpen, SelfFact{Path: p, Why: why})
	}
}

// SelfFact is a file of zsbx's that the command may change or, where refused is
// set, a path that it asked to write and may not.
type SelfFact struct {
	Path, Why, Hint string
	Refused         bool
	Origin          policy.Origin
}

// Apart is what rules alone make of writable trees in which zsbx's own files
// lie, where there are no mounts to hold them.
type Apart struct {
	Trees  []deny.Tree
	Open   []SelfFact
	Closed []closedDirs
}

// closedDirs are directories that nothing can be made in or removed from.
type closedDirs struct {
	Dirs   []string
	Origin policy.Origin
}

// TakeApart takes zsbx's own files out of the trees.
func (prot *Set) TakeApart(trees []deny.Tree, host *policy.Host) Apart {
	var out Apart
	for _, t := range trees {
		prot.takeOut(&out, t, host)
	}
	return out
}

// takeOut adds what is left of one tree.
func (prot *Set) takeOut(out *Apart, t deny.Tree, host *policy.Host) {
	read := t
	read.Access &^= policy.Write
	inside := slices.DeleteFunc(slices.Clone(prot.Self), func(h deny.Hit) bool { return !policy.Within(h.Path, t.Path) })
	switch {
	case t.Access&policy.Write == 0:
		out.Trees = append(out.Trees, t)
		return
	case slices.ContainsFunc(prot.Self, func(h deny.Hit) bool { return policy.Within(t.Path, h.Path) }):
		out.Trees = append(out.Trees, read)
		return
	case len(inside) == 0:
		out.Trees = append(out.Trees, t)
		return
	}
	rest, err := (&deny.Denials{Host: host}).Split(t, inside)
	if err != nil {
		why := fmt.Sprintf("; and %s can't be allowed entry by entry: %v", t.Path, err)
		out.Trees, out.Open = append(out.Trees, t), append(out.Open, prot.OpenSelf(why)...)
		return
	}
	out.Closed = append(out.Closed, closedDirs{above(inside, t.Path), t.Origin})
	out.Trees = append(append(out.Trees, read), rest...)
}

// OpenSelf says of all of zsbx's own files in writable trees why they are open.
func (prot *Set) OpenSelf(why string) []SelfFact {
	var out []SelfFact
	for _, h := range prot.Self {
		out = append(out, SelfFact{Path: h.Path, Why: why})
	}
	return out
}

// above lists the directories from top down to what the hits lie in.
func above(hits []deny.Hit, top string) []string {
	var out []string
	for _, h := range hits {
		for dir := path.Dir(h.Path); policy.Within(dir, top); dir = path.Dir(dir) {
			if !slices.Contains(out, dir) {
				out = append(out, dir)
			}
			if dir == "/" {
				break
			}
		}
	}
	slices.SortFunc(out, landlock.ComparePaths)
	return out
}
