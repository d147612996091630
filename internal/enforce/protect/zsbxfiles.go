package protect

import (
	"fmt"
	"slices"

	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// zsbx's own files are the policies, the trust store and the records of sessions. By changing
// them a command could decide what the next one may do. No rule makes them writable, nor what
// tracking relies on. In a mount namespace they are read-only. Without one, a writable tree
// that contains them is split as for a denial, but the directories between the tree and such a
// file stay readable, and nothing can be made or removed in them. What can't be protected
// either way is a core Gap.

// Fact is something that can't be protected, or something that the command may not do because a
// file is protected.
type Fact struct {
	Promise, Why, Hint string
	Closed             bool // nothing is open: the command may do less than the policy says
	Origin             policy.Origin
}

// openFact is the fact that one of zsbx's own files can be changed.
func openFact(p, why, hint string) Fact {
	return Fact{Promise: "no change of " + p + ", which zsbx relies on", Why: why, Hint: hint}
}

// zsbxFiles finds which of zsbx's files are in writable trees. It looks for the files by name, behind
// links that the command could replace, and on other mounts of their file systems.
func (c *protector) zsbxFiles(r *resolve.Resolved, files []string, table func() mounts.Table) {
	if len(c.trees) == 0 || len(c.trees) == 1 && c.trees[0] == r.TempDir {
		return
	}
	c.itself = true
	if why := table().Unread; why != nil {
		const what = "file systems of the kernel that are in writable trees"
		c.out.ZsbxFacts = append(c.out.ZsbxFacts, openFact(what, why.Error(), ""))
	}
	for _, dir := range table().Relied() {
		if c.writable(dir) {
			c.zsbxPath(r, dir)
		}
	}
	for _, f := range files {
		c.zsbxFile(r, f, table())
	}
	c.itself = false
	c.out.ZsbxMounts = c.out.Mounts
	c.out.Mounts = nil
}

// zsbxFile protects one file or directory under all its names.
func (c *protector) zsbxFile(r *resolve.Resolved, file string, table mounts.Table) {
	real, links, st, err := c.host.Trail(file)
	missing := host.Missing(err)
	for _, l := range links {
		if tree := c.within(l); tree != "" && !c.seen[l] {
			c.seen[l] = true
			c.out.ZsbxFiles = append(c.out.ZsbxFiles, l)
			c.pinLink(l, tree)
		}
	}
	switch {
	case err != nil && !c.writable(real):
		return
	case missing && r.OS == "macos": // a profile can deny what does not exist
		c.out.ZsbxFiles = append(c.out.ZsbxFiles, real)
		return
	case err != nil:
		why := err.Error()
		if missing { // also if a directory above is missing
			why = "it does not exist"
		}
		c.out.ZsbxFacts = append(c.out.ZsbxFacts, openFact(real, "it can't be protected: "+why, ""))
		return
	}
	c.zsbxPath(r, real)
	if st.Mode.IsRegular() && st.Nlink > 1 && st.Mode.Perm()&0o222 != 0 && c.linkable(r, st.ID) {
		c.out.ZsbxFacts = append(c.out.ZsbxFacts, openFact(real,
			fmt.Sprintf("it has %d names (hard links), and another one may be in a writable tree", st.Nlink),
			fmt.Sprintf("cp -p %s %[1]s.new && mv %[1]s.new %[1]s", shell.Quote(real))))
	}
	same, unseen := table.Same(c.host, real)
	for _, other := range same {
		c.zsbxPath(r, other)
	}
	if unseen != nil {
		c.out.ZsbxFacts = append(c.out.ZsbxFacts, openFact(real, unseen.Error(), ""))
	}
}

// zsbxPath protects one path if it is in a writable tree, or else the writable trees below it.
func (c *protector) zsbxPath(r *resolve.Resolved, p string) {
	if slices.ContainsFunc(c.out.ZsbxFiles, func(h string) bool { return host.Within(p, h) }) {
		return
	}
	protect := func(p, tree string) {
		c.out.ZsbxFiles = append(c.out.ZsbxFiles, p)
		c.add(p, tree)
	}
	tree := c.within(p)
	if tree != "" {
		protect(p, tree)
	}
	for _, t := range r.Paths {
		if t.Access&policy.Write == 0 || !host.Within(t.Path, p) {
			continue
		}
		c.out.ZsbxFacts = append(c.out.ZsbxFacts, Fact{
			Promise: "writing to " + t.Path,
			Why:     "no command may change what zsbx relies on",
			Closed:  true,
			Origin:  t.Rule.Origin,
		})
		if tree == "" {
			protect(t.Path, t.Path)
		}
	}
}

// linkable reports whether a writable tree is on a file's file system, so that it may contain a
// hard link to the file. The private temporary directory is new and has none.
func (c *protector) linkable(r *resolve.Resolved, id host.FileID) bool {
	return slices.ContainsFunc(r.Paths, func(t resolve.Path) bool {
		holds := t.Mode.IsDir() || t.Mode.IsRegular()
		return holds && t.Access&policy.Write != 0 && t.ID.Dev == id.Dev && t.Path != r.TempDir
	})
}

// Hideable returns those of some directories that can be hidden: no rule of the policy names
// them or anything in them. They need not exist.
func Hideable(r *resolve.Resolved, h *host.Host, dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		to := h.Way(dir)
		if to.Presence == host.Unknown {
			continue
		}
		real := to.Path
		if !slices.ContainsFunc(r.Paths, func(t resolve.Path) bool { return host.Within(t.Path, real) }) {
			out = append(out, real)
		}
	}
	return out
}

// TakeOut takes zsbx's own files out of the trees. It is for a plan whose mounts can't protect the
// files, for the reason in why. If the gap is accepted, the trees stay whole.
func (s *Set) TakeOut(
	trees []deny.Tree, machine *host.Host, why string, accepted bool,
) (out []deny.Tree, facts []Fact) {
	open := func(more string) {
		for _, h := range s.ZsbxFiles {
			facts = append(facts, openFact(h, why+more, ""))
		}
	}
	if accepted {
		open("")
		return trees, facts
	}
	for _, t := range trees {
		read := t
		read.Access &^= policy.Write
		inside := slices.DeleteFunc(slices.Clone(s.ZsbxFiles), func(h string) bool { return !host.Within(h, t.Path) })
		switch {
		case slices.ContainsFunc(s.ZsbxFiles, func(h string) bool { return host.Within(t.Path, h) }):
			out = append(out, read)
			continue
		case t.Access&policy.Write == 0 || len(inside) == 0:
			out = append(out, t)
			continue
		}
		rest, err := deny.Split(machine, t, inside)
		if err != nil {
			open(fmt.Sprintf("; and %s can't be allowed entry by entry: %v", t.Path, err))
			out = append(out, t)
			continue
		}
		const where = ", or on the way from there to zsbx's own files"
		facts = append(facts, Fact{
			Promise: "making and removing files directly in " + t.Path + where,
			Why:     why + "; to protect these, the other entries are allowed one by one",
			Hint:    "--allow-gap own-files",
			Closed:  true,
			Origin:  t.Origin,
		})
		out = append(append(out, read), rest...)
	}
	return out, facts
}
