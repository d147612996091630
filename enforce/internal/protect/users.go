package protect

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// users protects what is the user's, in every writable tree that somebody
// asked for.
func (c *protector) users(r *policy.Resolved) {
	for _, t := range r.Paths {
		if t.Access&policy.Write == 0 || !t.Mode.IsDir() || t.Path == r.TempDir {
			continue
		}
		switch src := t.Rule.Origin.Source; {
		case src == "preset git":
			c.gitDir(t.Path)
		case !strings.HasPrefix(src, "preset ") && src != "baseline":
			c.tree(t.Path)
		}
	}
	home, _, err := c.host.RealPath(r.Home)
	if r.Home == "" || err != nil {
		return
	}
	paths, there := r.Lent(home), policy.List(c.host, home)
	for _, name := range policy.StartupFiles() {
		if p := home + "/" + name; c.writable(p) {
			paths = append(paths, p)
		} else if !there.Lacks(name) {
			c.dotfile(p, true)
		}
	}
	for _, p := range paths {
		if tree := c.within(p); tree != "" && tree != p {
			c.add(p, tree)
		}
	}
}

// dotfile protects what a file of the user's leads to, or a link directly in a directory
// of theirs: a repository of such files may be writable. The links there are watched.
func (c *protector) dotfile(p string, look bool) {
	real, links, st, _ := c.host.Trail(p)
	for _, link := range links {
		if c.writable(link) {
			c.watch(Watched{Path: link})
		}
	}
	switch tree := c.within(real); {
	case tree != "" && tree != real:
		c.add(real, tree)
	case tree == "" && look && st.Mode.IsDir():
		entries, _ := policy.ReadSome(c.host, real, maxWatchedEntries)
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				c.dotfile(path.Join(real, e.Name()), false)
			}
		}
	}
}

// openedBy are the files that somebody asked to be writable by their own names: --rw
// .git/config. A directory is not opened so: whoever names one may not know what
// is in it. Nor by a link that a command may have put in the place of another file.
func (c *protector) openedBy(r *policy.Resolved) map[string]bool {
	names := make(map[string]bool)
	for _, t := range r.Paths {
		if t.Access&policy.Write != 0 && t.Mode.IsRegular() && !t.Rule.Origin.BuiltIn() && !slices.ContainsFunc(t.Links, c.writable) {
			names[t.Path] = true
		}
	}
	return names
}
