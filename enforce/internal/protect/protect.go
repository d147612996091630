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

// Set is what of the protected set lies in writable trees: files by
// which a later program, run outside and by another's hand, would do what the
// command wrote.
type Set struct {
	Mounts []mounts.Mount // what is there
	Watch  []Watched      // that, and what is not there and would take effect
	Repos  []string       // git directories of which the configuration is among these

	Self       []string       // zsbx's own files, and the links that lead to them
	SelfMounts []mounts.Mount // for these
	SelfFacts  []Fact         // what no means holds of these

	Unread []unread // configurations whose includes are not all known

	Table mounts.Table // nil when it was not read
}

// Summary names it in a few words.
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
	trees []string // writable directories, the outermost
	seen  map[string]bool
	home  string // the user's, as they have it
	repo  string // the root of the repository around the working directory, or ""

	opened map[string]bool // files that a rule of the user's names, which are theirs to open

	itself bool // what is added is zsbx's own
	bytes  int  // of indexes that are read yet
	out    Set
}

// Request is what is to be protected.
type Request struct {
	Self       []string // zsbx's own files
	Watch      []string // what can only be watched
	Users      bool     // the files of the user
	Repository string   // the root of the one around the working directory, or ""
}

// Find finds what is protected in the writable trees of r: zsbx's own
// files and, if asked for, those of the user.
func Find(r *policy.Resolved, host *policy.Host, q Request) Set {
	if host == nil || host.Lstat == nil || host.ReadDir == nil || host.ReadFile == nil || host.Readlink == nil {
		return Set{}
	}
	c := &protector{host: host, seen: make(map[string]bool), bytes: maxIndexes, home: r.Home, trees: mounts.WritableTrees(r.Paths)}
	c.out.Watch = make([]Watched, 0, 32)
	if c.trees == nil {
		c.trees = []string{"/"}
	}
	c.self(r, q.Self)
	for _, p := range q.Watch {
		c.watch(Watched{Path: p})
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
		c.searchPath()
		c.users(r)
	}
	return c.out
}

// within is the writable tree that a path lies in, "" for none.
func (c *protector) within(p string) string {
	for _, t := range c.trees {
		if p != "" && policy.Within(p, t) {
			return t
		}
	}
	return ""
}

func (c *protector) writable(p string) bool { return c.within(p) != "" }

// tree protects what is in one writable directory.
func (c *protector) tree(dir string) {
	top := policy.List(c.host, dir)
	names := append(make([]string, 0, 160), toldNames...) // room for all
	for _, g := range projectGroups {
		names = append(names, g.names...)
	}
	had := present(c.host, top, names)
	c.out.Watch = append(c.out.Watch, Watched{Path: dir, names: names, had: had})
	for _, p := range had {
		if slices.Contains(toldNames, path.Base(p)) {
			c.watch(Watched{Path: p})
		} else {
			c.add(p, "")
		}
	}
	switch git := c.repository(dir); {
	case git != "" && (!top.Lacks(".gitmodules") || c.isDir(path.Join(dir, ".git/modules"))):
		left := nestedModules
		c.gitlinks(dir, git, &left)
	case git == "" && !top.Lacks("HEAD") && c.isBare(dir):
		c.gitDir(dir)
	}
	c.nested(top)
}

// present are the files of some names that are there, in a directory that was listed
// or below it. A "*" in the last part of a name stands for any characters.
func present(host *policy.Host, top *policy.Listing, names []string) (out []string) {
	for _, name := range names {
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
			in = policy.List(host, path.Join(top.Dir, sub))
		}
		for _, e := range in.All(host) {
			n := e.Name()
			if i := len(n) - len(after); i >= len(before) && strings.EqualFold(n[:len(before)], before) && strings.EqualFold(n[i:], after) {
				out = append(out, path.Join(in.Dir, n))
			}
		}
	}
	return out
}

// add protects one file or directory, if it is in a writable tree, and pins
// the directories between it and pinFrom; with "" none is pinned. What does
// not exist is watched only. Of a link, or what lies behind one, that is what it leads
// to; the link itself is held if the directories above it are pinned: else it can be
// replaced, which is seen when the command ends.
func (c *protector) add(p, pinFrom string) bool {
	if c.seen[p] || !c.itself && c.opened[p] {
		return true
	}
	c.seen[p] = true
	st, err := c.host.Lstat(p)
	if err == nil {
		real, links, _, err := c.host.Trail(p)
		link := st.Mode&fs.ModeSymlink != 0
		if link || err == nil && real != p {
			c.out.Watch = append(c.out.Watch, Watched{Path: p})
			for _, l := range links {
				if c.writable(l) {
					c.watch(Watched{Path: l})
				}
			}
			if link && pinFrom != "" {
				c.pinLink(p, pinFrom)
			}
			if errors.Is(err, fs.ErrNotExist) && c.writable(real) { // it may come
				c.watch(Watched{Path: real, missing: true})
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
	if !c.itself || !st.Mode.IsDir() { // zsbx itself writes to its directories
		c.out.Watch = append(c.out.Watch, Watched{Path: p, Mounted: exists, missing: errors.Is(err, fs.ErrNotExist)})
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

// linked protects the files that links in a protected directory lead to: a hook that is
// kept in the working tree.
func (c *protector) linked(dir string) {
	entries, _ := policy.ReadSome(c.host, dir, maxWatchedEntries)
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

// watch has a change told when the command has ended.
func (c *protector) watch(w Watched) {
	if !c.seen[w.Path] {
		c.seen[w.Path] = true
		c.out.Watch = append(c.out.Watch, w)
	}
}

// pin keeps a directory and those above it from being renamed, up to but not
// including top; none with "".
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
