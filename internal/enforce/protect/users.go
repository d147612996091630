package protect

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// users protects the user's files: those in writable trees, except trees that only the baseline
// or a preset opens, and the start-up files.
func (c *protector) users(r *resolve.Resolved) {
	for _, t := range r.Paths {
		if t.Access&policy.Write == 0 || !t.Mode.IsDir() || t.Path == r.TempDir {
			continue
		}
		c.left = maxProtected
		c.bytes = maxIndexes
		src := t.Rule.Origin.Source
		switch {
		case src == "preset git":
			c.gitDir(t.Path)
		case !strings.HasPrefix(src, "preset ") && src != "baseline":
			c.tree(t.Path)
		}
	}
	c.left = maxProtected
	if home := c.startup(r.Home, "", ""); home != "" {
		c.addInside(r.Lent(home))
	}
	c.startup(c.host.Getenv("XDG_CONFIG_HOME"), ".config/", ".config/")
	c.startup(c.host.Getenv("ZDOTDIR"), ".z", "")
	if p := c.host.Getenv("GIT_CONFIG_GLOBAL"); path.IsAbs(p) {
		to := c.host.Way(p)
		c.compareLinks(to.Links)
		c.addInside([]string{to.Path})
	}
}

// startup protects files in dir that the user's shells, git, editors and so on read when they
// start. Of their names it uses those that begin with which, and strips the prefix cut. It
// returns the canonical path of dir, or "".
func (c *protector) startup(dir, which, cut string) string {
	if !path.IsAbs(dir) {
		return ""
	}
	to := c.host.Way(dir)
	c.compareLinks(to.Links)
	if to.Presence == host.Unknown {
		c.unknown(to.Path, to.Err)
	}
	if to.Presence != host.Present {
		return ""
	}
	real := to.Path
	there := host.List(c.host, real)
	all := c.writable(real)
	config := &host.Listing{} // may have any file
	isConfig := func(e fs.DirEntry) bool { return e.Name() == ".config" && e.IsDir() }
	if !all && slices.ContainsFunc(there.Entries, isConfig) {
		config = host.List(c.host, path.Join(real, ".config"))
	}
	for _, name := range resolve.StartupFiles(c.host.OS) {
		if !strings.HasPrefix(name, which) {
			continue
		}
		name = strings.TrimPrefix(name, cut)
		below, in := strings.CutPrefix(name, ".config/")
		if !all && there.Lacks(name) || in && config.Lacks(below) {
			continue
		}
		if p := path.Join(real, name); c.writable(p) {
			c.addInside([]string{p})
		} else {
			c.dotfile(p, true)
		}
	}
	return real
}

// addInside protects paths that are in a writable tree, except the tree itself.
func (c *protector) addInside(paths []string) {
	for _, p := range paths {
		if tree := c.within(p); tree != "" && tree != p {
			c.add(p, tree)
		}
	}
}

// dotfile protects the target of a user's file, or of a link directly in a user's directory,
// since these may lead to a writable repository of dotfiles. It compares the links themselves.
func (c *protector) dotfile(p string, look bool) {
	to := c.host.Way(p)
	c.compareLinks(to.Links)
	tree := c.within(to.Path)
	switch {
	case tree != "" && tree != to.Path:
		c.add(to.Path, tree)
	case tree == "" && look && to.IsDir():
		in := host.ListAll(c.host, to.Path)
		if in.Unread != nil {
			c.unlisted(to.Path, in.Unread)
		}
		for _, e := range in.All {
			if e.Type()&fs.ModeSymlink != 0 {
				c.dotfile(path.Join(to.Path, e.Name()), false)
			}
		}
	}
}

// openedBy returns the files that a rule of the user makes writable by name, such as --rw
// .git/config. A directory does not count, since the user may not know what is in it. A path
// through a link that a command can write does not count either.
func (c *protector) openedBy(r *resolve.Resolved) map[string]bool {
	names := make(map[string]bool)
	for _, t := range r.Paths {
		if t.Access&policy.Write == 0 || !t.Mode.IsRegular() || t.Rule.Origin.BuiltIn() {
			continue
		}
		if !slices.ContainsFunc(t.Links, c.writable) {
			names[t.Path] = true
		}
	}
	return names
}
