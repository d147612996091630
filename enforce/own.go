package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// zsbx's own files are the policies, the trust store and the records of
// sessions: by changing them a command would decide what the next one may do.
// No rule of a policy makes them writable, nor what tracking relies on. In a
// mount namespace they are read-only. Without one, a writable tree that holds
// them is taken apart as for a denial, with one difference: the directories
// between the tree and such a file stay readable, and nothing can be made in
// them or removed. What can't be held in either way is a core Gap.

// own finds which of the files lie in writable trees: under their own names,
// through links that the command could replace, and on a second mount of their
// file system.
func (c *protector) own(r *policy.Resolved, files []string) {
	if len(c.trees) == 0 || len(c.trees) == 1 && c.trees[0] == r.TempDir {
		return
	}
	c.owning = true
	c.out.table = readMounts(c.host)
	for _, dir := range c.out.table.relied() {
		if c.writable(dir) {
			c.ownPath(r, dir)
		}
	}
	for _, f := range files {
		c.ownFile(r, f)
	}
	c.owning = false
	c.out.ownMounts, c.out.mounts = c.out.mounts, nil
}

// ownFile holds one file or directory by all its names.
func (c *protector) ownFile(r *policy.Resolved, file string) {
	real, links, st, err := c.host.Trail(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.unheld(file, err.Error())
		return
	}
	for _, l := range links {
		if tree := c.within(l); tree != "" && !c.seen[l] {
			c.seen[l] = true
			c.out.own = append(c.out.own, hit{path: l, dir: true})
			c.pinLink(l, tree)
		}
	}
	switch {
	case err != nil && r.OS == "macos" && c.writable(real): // a profile can deny what is not there
		c.out.own = append(c.out.own, hit{path: real, dir: true})
		return
	case err != nil:
		c.unheld(real, "it does not exist, and so can't be held")
		return
	}
	c.ownPath(r, real)
	if st.Mode.IsRegular() && st.Links > 1 && st.Mode.Perm()&0o222 != 0 && c.linkable(r, st.ID) {
		c.out.ownOpen = append(c.out.ownOpen, ownFact{path: real,
			why:  fmt.Sprintf("it has %d names (hard links), and another one may lie in a writable tree", st.Links),
			hint: fmt.Sprintf("cp -p %s %[1]s.new && mv %[1]s.new %[1]s", quoteWord(real))})
	}
	for _, other := range c.out.table.aliases(real) {
		if there, err := c.host.Lstat(other); err == nil && there.ID == st.ID {
			c.ownPath(r, other)
		}
	}
}

// ownPath holds one path if it lies in a writable tree, or else the writable
// trees that lie in it.
func (c *protector) ownPath(r *policy.Resolved, p string) {
	if slices.ContainsFunc(c.out.own, func(h hit) bool { return within(p, h.path) }) {
		return
	}
	tree := c.within(p)
	if tree != "" {
		c.out.own = append(c.out.own, hit{path: p, dir: true})
		c.add(p, tree)
	}
	for _, t := range r.Paths {
		if t.Access&policy.Write == 0 || !within(t.Path, p) {
			continue
		}
		c.out.ownOpen = append(c.out.ownOpen, ownFact{path: t.Path, refused: true,
			why: "no command may change what zsbx relies on", origin: t.Rule.Origin})
		if tree == "" {
			c.out.own = append(c.out.own, hit{path: t.Path, dir: true})
			c.add(t.Path, t.Path)
		}
	}
}

// hideable are those of some directories, there or not, that the policy does not
// name: they, or something in them, were asked for.
func hideable(r *policy.Resolved, host *policy.Host, dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		real, _, _, err := host.Trail(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !slices.ContainsFunc(r.Paths, func(t policy.Path) bool { return within(t.Path, real) }) {
			out = append(out, real)
		}
	}
	return out
}

// linkable says whether a writable tree is on the file system of a file, so
// that it may hold another name of it. The private temporary directory is new.
func (c *protector) linkable(r *policy.Resolved, id policy.FileID) bool {
	return slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return t.Access&policy.Write != 0 && t.ID.Dev == id.Dev && t.Path != r.TempDir && (t.Mode.IsDir() || t.Mode.IsRegular())
	})
}

func (c *protector) unheld(p, why string) {
	if c.writable(p) {
		c.out.ownOpen = append(c.out.ownOpen, ownFact{path: p, why: why})
	}
}

// ownFact is a file of zsbx's that the command may change or, where refused is
// set, a path that it asked to write and may not.
type ownFact struct {
	path, why, hint string
	refused         bool
	origin          policy.Origin
}

// apart is what rules alone make of writable trees in which zsbx's own files
// lie, where there are no mounts to hold them.
type apart struct {
	trees  []tree
	open   []ownFact
	closed []closedDirs
}

// closedDirs are directories that nothing can be made in or removed from.
type closedDirs struct {
	dirs   []string
	origin policy.Origin
}

// takeApart takes zsbx's own files out of the trees.
func (prot *protection) takeApart(trees []tree, host *policy.Host) apart {
	var out apart
	for _, t := range trees {
		prot.takeOut(&out, t, host)
	}
	return out
}

// takeOut adds what is left of one tree.
func (prot *protection) takeOut(out *apart, t tree, host *policy.Host) {
	read := t
	read.access &^= policy.Write
	inside := slices.DeleteFunc(slices.Clone(prot.own), func(h hit) bool { return !within(h.path, t.path) })
	switch {
	case t.access&policy.Write == 0:
		out.trees = append(out.trees, t)
		return
	case slices.ContainsFunc(prot.own, func(h hit) bool { return within(t.path, h.path) }):
		out.trees = append(out.trees, read)
		return
	case len(inside) == 0:
		out.trees = append(out.trees, t)
		return
	}
	rest, err := (&denials{host: host}).split(t, inside)
	if err != nil {
		why := fmt.Sprintf("; and %s can't be allowed entry by entry: %v", t.path, err)
		out.trees, out.open = append(out.trees, t), append(out.open, prot.openOwn(why)...)
		return
	}
	out.closed = append(out.closed, closedDirs{above(inside, t.path), t.origin})
	out.trees = append(append(out.trees, read), rest...)
}

// openOwn says of all of zsbx's own files in writable trees why they are open.
func (prot *protection) openOwn(why string) []ownFact {
	var out []ownFact
	for _, h := range prot.own {
		out = append(out, ownFact{path: h.path, why: why})
	}
	return out
}

// above lists the directories from top down to what the hits lie in.
func above(hits []hit, top string) []string {
	var out []string
	for _, h := range hits {
		for dir := path.Dir(h.path); within(dir, top); dir = path.Dir(dir) {
			if !slices.Contains(out, dir) {
				out = append(out, dir)
			}
			if dir == "/" {
				break
			}
		}
	}
	slices.SortFunc(out, comparePaths)
	return out
}
