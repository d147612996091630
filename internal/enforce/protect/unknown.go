package protect

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/shell"
)

// A command may close its own directories by chmod(2), and open them in the next run. So what
// can't be looked at may be there. This file protects the directory around it as a whole. Where
// that is impossible, it adds a fact.

// unknown is for a path of which it is not known whether it exists, or what is in it. It protects
// the innermost directory on the way that can be looked at, with all that is in it.
func (c *protector) unknown(p string, why error) {
	dir := p
	at := c.host.Look(p)
	for at.Presence != host.Present && dir != "/" {
		dir = path.Dir(dir)
		at = c.host.Look(dir)
	}
	if dir != p { // if it is made later, that is reported
		c.compare(Compared{Path: p})
	}
	key := "unknown " + dir // a key that is no path
	if !c.writable(dir) || c.seen[key] {
		return
	}
	c.seen[key] = true
	switch {
	case at.IsLink():
		to := c.host.Way(dir)
		c.compareLinks(to.Links)
		switch {
		case host.Within(to.Path, dir): // a loop, or it can't be read
			c.fact("no change of what "+dir+" leads to", dir, why)
		case to.Presence != host.Absent:
			c.unknown(to.Path, why)
		}
	case !c.host.MayOpen(dir, at.Stat):
		c.compare(Compared{Path: dir, Kind: Denied})
	case slices.ContainsFunc(c.rules, func(rule string) bool { return host.Within(rule, dir) }):
		c.fact("no change of what programs outside run or trust in "+dir, dir, why)
	default:
		c.whole(dir, at.Stat)
		c.fact("no change of what links in "+dir+" lead to", dir, why)
	}
}

// whole protects a path that exists, with all that is in it.
func (c *protector) whole(p string, st host.Stat) {
	c.out.Paths = append(c.out.Paths, Compared{Path: p, Kind: Protected})
	c.out.Mounts = append(c.out.Mounts, mounts.Mount{Path: p, Kind: mounts.Protect, Dir: st.Mode.IsDir(), ID: st.ID})
}

// unlisted records that the links in a directory are not known.
func (c *protector) unlisted(dir string, why error) {
	at := c.host.Look(dir)
	if at.Presence != host.Present || c.host.MayOpen(dir, at.Stat) {
		c.fact("no change of what links in "+dir+" lead to", dir, why)
	}
}

// unread records that it is not known what a file names. A file that the user may not read, and
// the command can't open, does not matter: the user's programs can't read it either.
func (c *protector) unread(file string, why error) {
	if !errors.Is(why, fs.ErrPermission) || c.writable(file) {
		c.fact("no change of what "+file+" names", file, why)
	}
}

// fact adds a fact about a path that can't be looked at.
func (c *protector) fact(promise, p string, why error) {
	f := Fact{Promise: promise, Why: p + " can't be looked into: " + files.Plain(why).Error()}
	if errors.Is(why, fs.ErrPermission) && c.host.MayChmod(p) {
		f.Hint = "chmod u+rwX " + shell.Quote(p)
	}
	c.out.Facts = append(c.out.Facts, f)
}
