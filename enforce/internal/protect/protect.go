package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/policy"
)

// Set is the part of the protected set that is in writable trees.
type Set struct {
	Mounts []mounts.Mount // for what exists
	Audit                 // the same, and what would take effect if it were made

	Self       []string       // zsbx's own files, and links to them
	SelfMounts []mounts.Mount // for zsbx's own files
	SelfFacts  []Fact         // about zsbx's own files

	Facts []Fact // what of the rest can't be protected
}

func (prot Set) Summary() string {
	var names []string
	for _, m := range prot.Mounts {
		if m.Kind == mounts.Protect {
			names = append(names, m.Path)
		}
	}
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// protector collects the protected set.
type protector struct {
	host  *policy.Host
	trees []string // the outermost writable directories
	seen  map[string]bool
	home  string // the user's, as in the environment
	repo  string // the root of the repository around the working directory, or ""

	opened map[string]bool // files that a rule of the user names, and so makes writable

	itself bool // zsbx's own files are being added
	bytes  int  // of indexes that may still be read
	left   int  // paths that may still be protected
	out    Set
}

type Request struct {
	Self       []string // zsbx's own files
	Watch      []string // what is only watched
	Users      bool     // find the user's files, too
	Repository string   // the root of the repository around the working directory, or ""
	Table      func() mounts.Table
}

// Find finds what to protect in the writable trees of r: zsbx's own files and, if asked for,
// the user's.
func Find(r *policy.Resolved, host *policy.Host, q Request) Set {
	if host == nil {
		return Set{}
	}
	c := &protector{host: host, seen: make(map[string]bool), bytes: maxIndexes, left: maxProtected, home: r.Home, trees: mounts.WritableTrees(r.Paths)}
	c.out.Watch = make([]Watched, 0, 32)
	if c.trees == nil {
		c.trees = []string{"/"}
	}
	c.self(r, q.Self, q.Table)
	for _, p := range q.Watch {
		c.watch(Watched{Path: p})
	}
	for _, s := range r.Net.Unix { // else a socket could be moved into an allowed directory
		if s.Mode.IsDir() {
			c.pin(s.Path, c.within(s.Path))
		}
	}
	if q.Users {
		c.opened = c.openedBy(r)
		switch c.repo = q.Repository; {
		case c.repo == "":
		case c.writable(c.repo):
			c.repository(c.repo)
		case slices.ContainsFunc(c.trees, func(t string) bool { return policy.Within(t, c.repo) }):
			c.around(c.repo)
		}
		c.users(r)
	}
	return c.out
}

// within returns the writable tree that a path is in, or "".
func (c *protector) within(p string) string {
	for _, t := range c.trees {
		if p != "" && policy.Within(p, t) {
			return t
		}
	}
	return ""
}

func (c *protector) writable(p string) bool { return c.within(p) != "" }

// maxProtected limits the paths for one repository, for the names of a project, and for nested
// repositories. A command can leave any number of hooks, includes and so on, and each one is
// mounted.
const maxProtected = 4096

// full reports whether the limit is reached. The first time it adds a fact.
func (c *protector) full(p string) bool {
	if c.itself {
		return false
	}
	if c.left--; c.left == 0 {
		c.out.Facts = append(c.out.Facts, Fact{Promise: "no change of " + p + " and more that programs outside act upon",
			Why: fmt.Sprintf("only %d paths of a writable tree are protected", maxProtected)})
	}
	return c.left <= 0
}

// tree protects what is in one writable directory. Each part has a limit of its own, so that
// files that a command made in one part can't use up the limit of the others.
func (c *protector) tree(dir string) {
	top := policy.ListAll(c.host, dir)
	git := c.repository(dir)
	links := c.linksAhead(git)
	c.left = maxProtected
	c.project(top)
	near := c.near(top)
	c.left = maxProtected
	c.gitlinks(dir, links(), new(nestedModules))
	if git == "" && !top.Lacks("HEAD") && c.isBare(dir) {
		c.gitDir(dir)
	}
	for _, sub := range near {
		c.gitlinks(sub, c.links(c.repository(sub)), new(nestedModules))
		c.add(sub+projectFile, "")
	}
}

// project protects the files of a project by name.
func (c *protector) project(top *policy.Listing) {
	had := present(c.host, top)
	c.out.projects = append(c.out.projects, project{top.Dir, had})
	for _, p := range had {
		name := strings.TrimPrefix(p[len(top.Dir):], "/")
		if slices.ContainsFunc(reportedNames, func(n string) bool { is, _ := path.Match(n, name); return is }) {
			c.watch(Watched{Path: p})
		} else {
			c.add(p, "")
		}
	}
}

// present returns the files of a project that exist in a listed directory or below it.
func present(host *policy.Host, top *policy.Listing) (out []string) {
	for _, name := range projectNames() {
		sub, last := path.Split(name)
		before, after, pattern := strings.Cut(last, "*")
		if (sub != "" || !pattern) && top.Lacks(name) {
			continue
		}
		if p := path.Join(top.Dir, name); !pattern {
			if _, err := host.Lstat(p); err == nil {
				out = append(out, p)
			}
			continue
		}
		in := top
		if sub != "" {
			in = policy.ListAll(host, path.Join(top.Dir, sub))
		}
		first := len(out)
		for _, e := range in.All {
			n := e.Name()
			if i := len(n) - len(after); i >= len(before) && strings.EqualFold(n[:len(before)], before) && strings.EqualFold(n[i:], after) {
				out = append(out, path.Join(in.Dir, n))
			}
		}
		slices.Sort(out[first:])
	}
	return out
}

// add protects one file or directory, if it is in a writable tree, and pins the directories
// between it and pinFrom, or none for "". It only watches what does not exist. If links lead to
// the file, add protects their target. It also pins a link that is the last part of the path,
// if pinFrom is set. Other links can be replaced, which is noticed when the command ends.
func (c *protector) add(p, pinFrom string) bool {
	if c.seen[p] || !c.itself && c.opened[p] {
		return true
	}
	if c.full(p) {
		return false
	}
	c.seen[p] = true
	st, err := c.host.Lstat(p)
	if err == nil {
		real, links, _, err := c.host.Trail(p)
		link := st.Mode&fs.ModeSymlink != 0
		if link || err == nil && real != p {
			c.out.Watch = append(c.out.Watch, Watched{Path: p})
			c.watchLinks(links)
			if link && pinFrom != "" {
				c.pinLink(p, pinFrom)
			}
			if errors.Is(err, fs.ErrNotExist) && c.writable(real) { // it may be made
				c.watch(Watched{Path: real, Kind: Missing})
			}
			if err != nil || !c.writable(real) {
				return err == nil
			}
			if !link || !policy.Within(real, pinFrom) {
				pinFrom = ""
			}
			return c.add(real, pinFrom)
		}
	}
	exists := err == nil && (st.Mode.IsRegular() || st.Mode.IsDir())
	if !c.itself || !st.Mode.IsDir() { // zsbx itself writes to its own directories
		kind := kindOf(err)
		if exists {
			kind = Protected
		}
		c.out.Watch = append(c.out.Watch, Watched{Path: p, Kind: kind})
	}
	if exists {
		c.out.Mounts = append(c.out.Mounts, mounts.Mount{Path: p, Kind: mounts.Protect, Dir: st.Mode.IsDir(), ID: st.ID})
		c.pin(path.Dir(p), pinFrom)
		if st.Mode.IsDir() && !c.itself {
			c.linked(p)
		}
	}
	return exists
}

// linked protects the files that links in a protected directory lead to, such as a hook in the
// working tree.
func (c *protector) linked(dir string) {
	entries, _ := c.host.Entries(dir, maxWatchedEntries)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		link := path.Join(dir, e.Name())
		if _, st, err := c.host.RealPath(link); err != nil || st.Mode.IsRegular() {
			c.add(link, "")
		}
	}
}

// watch makes a change be reported when the command has ended. A watched file can still be
// protected later for another reason.
func (c *protector) watch(w Watched) {
	if key := "watch " + w.Path; !c.seen[w.Path] && !c.seen[key] && !c.full(w.Path) {
		c.seen[key] = true
		c.out.Watch = append(c.out.Watch, w)
	}
}

// watchLinks watches those links to protected files that can be replaced.
func (c *protector) watchLinks(links []string) {
	for _, l := range links {
		if c.writable(l) {
			c.watch(Watched{Path: l})
		}
	}
}

// watchWay watches the way to a directory: links, and the first missing name, which may become
// a directory or a link to one.
func (c *protector) watchWay(links []string, err error) {
	c.watchLinks(links)
	if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) && c.writable(missing.Path) {
		c.watch(Watched{Path: missing.Path})
	}
}

// pin keeps a directory and those above it, below top, from being renamed. With "" it does
// nothing.
func (c *protector) pin(dir, top string) {
	for ; top != "" && dir != top && policy.Within(dir, top) && !c.seen[dir+"/"]; dir = path.Dir(dir) {
		c.seen[dir+"/"] = true
		if !slices.Contains(c.trees, dir) {
			c.out.Mounts = append(c.out.Mounts, mounts.Mount{Path: dir, Kind: mounts.Pin, Dir: true})
		}
	}
}

// pinLink keeps a link from being replaced, by mounting it onto itself.
func (c *protector) pinLink(p, top string) {
	c.out.Mounts = append(c.out.Mounts, mounts.Mount{Path: p, Kind: mounts.Pin})
	c.pin(path.Dir(p), top)
}
