package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Set is the part of the protected set that is in writable trees.
type Set struct {
	Mounts []mounts.Mount // for what exists
	Audit                 // the same, and what would take effect if it were made

	ZsbxFiles  []string       // zsbx's own files, and links to them
	ZsbxMounts []mounts.Mount // for zsbx's own files
	ZsbxFacts  []Fact         // about zsbx's own files

	Facts []Fact // what of the rest can't be protected
}

// Summary names what exists, for people.
func (s Set) Summary() string {
	var names []string
	for _, m := range s.Mounts {
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
	host  *host.Host
	trees []string // the outermost writable directories
	rules []string // all paths that a rule makes writable
	seen  map[string]bool
	home  string // the user's, as in the environment
	repo  string // the root of the repository around the working directory, or ""

	opened  map[string]bool     // files that a rule of the user names, and so makes writable
	global  []gitconfig.Setting // the user's for all repositories; nil if they were not read yet
	configs map[string]*parsed  // git configurations by their names

	itself bool // zsbx's own files are being added
	bytes  int  // of indexes that may still be read
	left   int  // paths that may still be protected
	out    Set
}

// Request says what to protect.
type Request struct {
	ZsbxFiles  []string // zsbx's own files
	Compare    []string // what is only compared before and after
	Users      bool     // find the user's files, too
	Repository string   // the root of the repository around the working directory, or ""
	Table      func() mounts.Table
}

// Find finds what to protect in the writable trees of r: zsbx's own files and, if asked for,
// the user's.
func Find(r *resolve.Resolved, h *host.Host, q Request) Set {
	if h == nil {
		return Set{}
	}
	c := &protector{
		host:  h,
		seen:  make(map[string]bool),
		bytes: maxIndexes,
		left:  maxProtected,
		home:  r.Home,
		trees: mounts.WritableTrees(r.Paths),
	}
	c.out.Paths = make([]Compared, 0, 32)
	for _, t := range r.Paths {
		if t.Access&policy.Write != 0 {
			c.rules = append(c.rules, t.Path)
		}
	}
	if c.trees == nil {
		c.trees = []string{"/"}
	}
	c.zsbxFiles(r, q.ZsbxFiles, q.Table)
	for _, p := range q.Compare {
		c.compare(Compared{Path: p})
	}
	for _, s := range r.Net.Unix { // else a socket could be moved into an allowed directory
		if s.Mode.IsDir() {
			c.pin(s.Path, c.within(s.Path))
		}
	}
	if q.Users {
		c.opened = c.openedBy(r)
		c.repo = q.Repository
		switch {
		case c.repo == "":
		case c.writable(c.repo):
			c.repository(c.repo)
		case slices.ContainsFunc(c.trees, func(t string) bool { return host.Within(t, c.repo) }):
			c.around(c.repo)
		}
		c.users(r)
	}
	return c.out
}

// within returns the writable tree that a path is in, or "".
func (c *protector) within(p string) string {
	for _, t := range c.trees {
		if p != "" && host.Within(p, t) {
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
	c.left--
	if c.left == 0 {
		c.out.Facts = append(c.out.Facts, Fact{
			Promise: "no change of " + p + " and more that programs outside run or trust",
			Why:     fmt.Sprintf("only %d paths of a writable tree are protected", maxProtected),
		})
	}
	return c.left <= 0
}

// tree protects what is in one writable directory. Each part has its limit, so that files that a
// command made in one part can't use up the limit of the others.
func (c *protector) tree(dir string) {
	top := host.ListAll(c.host, dir)
	git := c.repository(dir)
	links := c.linksAhead(git)
	c.left = maxProtected
	c.project(top)
	near := c.near(top)
	c.left = maxProtected
	c.gitlinks(dir, links(), new(nestedModules))
	if git == "" && !top.Lacks("HEAD") && c.isBare(dir) {
		c.gitDir(dir)
		c.configured(dir, dir, dir)
	}
	for _, sub := range near {
		c.gitlinks(sub, c.links(c.repository(sub)), new(nestedModules))
		c.add(sub+projectFile, "")
	}
}

// project protects the files of a project by name.
func (c *protector) project(top *host.Listing) {
	had, closed := present(c.host, top)
	c.out.projects = append(c.out.projects, project{top.Dir, had, each(closed, unseen.name)})
	for _, u := range closed {
		c.unknown(u.path, u.why)
	}
	for _, p := range had {
		name := strings.TrimPrefix(p[len(top.Dir):], "/")
		if slices.ContainsFunc(reportedNames, func(pattern string) bool {
			is, _ := path.Match(pattern, name)
			return is
		}) {
			c.compare(Compared{Path: p})
		} else {
			c.add(p, "")
		}
	}
}

// unseen is a path that can't be looked at, or a directory that can't be listed.
type unseen struct {
	path string
	why  error
}

func (u unseen) name() string { return u.path }

// present returns the files of a project that exist in a listed directory or below it, and what
// may be one but can't be looked at.
func present(h *host.Host, top *host.Listing) (out []string, closed []unseen) {
	if top.Unread != nil {
		closed = append(closed, unseen{top.Dir, top.Unread})
	}
	for _, name := range projectNames() {
		sub, last := path.Split(name)
		before, after, pattern := strings.Cut(last, "*")
		if (sub != "" || !pattern) && top.Lacks(name) {
			continue
		}
		if p := path.Join(top.Dir, name); !pattern {
			at := h.Look(p)
			switch at.Presence {
			case host.Present:
				out = append(out, p)
			case host.Unknown:
				closed = append(closed, unseen{p, at.Err})
			}
			continue
		}
		in := top
		if sub != "" {
			in = host.ListAll(h, path.Join(top.Dir, sub))
			if in.Unread != nil {
				closed = append(closed, unseen{in.Dir, in.Unread})
			}
		}
		first := len(out)
		for _, e := range in.All {
			n := e.Name()
			if matches(n, before, after) {
				out = append(out, path.Join(in.Dir, n))
			}
		}
		slices.Sort(out[first:])
	}
	return out, closed
}

// matches reports whether a name begins and ends with texts that do not overlap, in any case.
func matches(name, before, after string) bool {
	i := len(name) - len(after)
	if i < len(before) {
		return false
	}
	return strings.EqualFold(name[:len(before)], before) && strings.EqualFold(name[i:], after)
}

// add protects one file or directory, if it is in a writable tree, and pins the directories
// between it and pinFrom, or none for "". It only compares what does not exist. If links lead to
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
	at := c.host.Look(p)
	if at.Presence == host.Unknown {
		c.out.Paths = append(c.out.Paths, Compared{Path: p})
		c.unknown(p, at.Err)
		return false
	}
	if at.Presence == host.Present {
		to := c.host.Way(p)
		if at.IsLink() || to.Presence == host.Present && to.Path != p {
			return c.behind(p, at, to, pinFrom)
		}
	}
	exists := at.IsRegular() || at.IsDir()
	if !c.itself || !at.IsDir() { // zsbx itself writes to its own directories
		kind := kindOf(at)
		if exists {
			kind = Protected
		}
		c.out.Paths = append(c.out.Paths, Compared{Path: p, Kind: kind})
	}
	if exists {
		mount := mounts.Mount{Path: p, Kind: mounts.Protect, Dir: at.IsDir(), ID: at.Stat.ID}
		c.out.Mounts = append(c.out.Mounts, mount)
		c.pin(path.Dir(p), pinFrom)
		if at.IsDir() && !c.itself {
			c.linked(p)
		}
	}
	return exists
}

// behind is add for a path to which links lead. The last part of it is at.
func (c *protector) behind(p string, at host.Found, to host.Way, pinFrom string) bool {
	c.out.Paths = append(c.out.Paths, Compared{Path: p})
	c.compareLinks(to.Links)
	if at.IsLink() && pinFrom != "" {
		c.pinLink(p, pinFrom)
	}
	switch {
	case to.Presence == host.Unknown:
		c.unknown(to.Path, to.Err)
		return false
	case to.Presence == host.Absent:
		if c.writable(to.Path) { // it may be made
			c.compare(Compared{Path: to.Path, Kind: Missing})
		}
		return false
	case !c.writable(to.Path):
		return true
	}
	if !at.IsLink() || !host.Within(to.Path, pinFrom) {
		pinFrom = ""
	}
	return c.add(to.Path, pinFrom)
}

// linked protects the files that links in a protected directory lead to, such as a hook in the
// working tree.
func (c *protector) linked(dir string) {
	in := host.ListAll(c.host, dir)
	if in.Unread != nil {
		c.unlisted(dir, in.Unread)
	}
	for _, e := range in.All {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		link := path.Join(dir, e.Name())
		if to := c.host.Way(link); to.Presence != host.Present || to.IsRegular() {
			c.add(link, "")
		}
	}
}

// compare makes a change be reported when the command has ended. A compared file can still be
// protected later for another reason.
func (c *protector) compare(w Compared) {
	if !c.compared(w.Path) && !c.full(w.Path) {
		c.note(w)
	}
}

// compared reports whether changes of a path are reported.
func (c *protector) compared(p string) bool { return c.seen[p] || c.seen["compare "+p] }

// note is compare without a limit.
func (c *protector) note(w Compared) {
	if !c.compared(w.Path) {
		c.seen["compare "+w.Path] = true
		c.out.Paths = append(c.out.Paths, w)
	}
}

// compareLinks compares those links to protected files that can be replaced.
func (c *protector) compareLinks(links []string) {
	for _, l := range links {
		if c.writable(l) {
			c.compare(Compared{Path: l})
		}
	}
}

// compareWay compares the way to a directory: links, and the first missing name, which may become
// a directory or a link to one.
func (c *protector) compareWay(links []string, err error) {
	c.compareLinks(links)
	missing, ok := errors.AsType[*fs.PathError](err)
	if ok && errors.Is(err, fs.ErrNotExist) && c.writable(missing.Path) {
		c.compare(Compared{Path: missing.Path})
	}
}

// pin keeps a directory and those above it, below top, from being renamed. With "" it does
// nothing.
func (c *protector) pin(dir, top string) {
	for ; top != "" && dir != top && host.Within(dir, top) && !c.seen[dir+"/"]; dir = path.Dir(dir) {
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
