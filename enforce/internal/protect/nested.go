package protect

import (
	"path"

	"github.com/zsbx/zsbx/policy"
)

// Git looks for a repository from the working directory upwards, so that each
// directory of a writable tree can become one. Those near the top are looked
// at before the command, to protect the repositories that are there, and to tell
// afterwards of those that were made in them.

// The bounds of the search, so that it costs the same in a tree of any size.
const (
	nestedDepth   = 2                // directories below the tree
	nestedEntries = policy.MaxListed // directory entries looked at, for each tree
	nestedModules = 256              // submodules and linked worktrees, for each repository
)

// nested looks for repositories and projects' policies in the directories near
// the top of a writable tree, the nearest first.
func (c *protector) nested(top *policy.Listing) {
	level, left := []string{top.Dir}, nestedEntries
	for range nestedDepth {
		var next []string
		for _, d := range level {
			in := top
			if d != top.Dir {
				in = policy.List(c.host, d)
			}
			for _, sub := range subdirs(in, &left) {
				if name := path.Base(sub); name != ".git" && name != "node_modules" {
					c.repository(sub)
					c.add(sub+"/.zsbx.toml", "")
					next = append(next, sub)
				}
			}
			if left < 0 {
				return
			}
		}
		level = next
	}
}

// subdirs lists directories, as long as some entries are left to be looked at;
// left becomes negative when there were more.
func (c *protector) subdirs(dir string, left *int) []string {
	if *left < 0 {
		return nil
	}
	return subdirs(policy.List(c.host, dir), left)
}

func subdirs(in *policy.Listing, left *int) []string {
	var out []string
	for _, e := range in.Entries {
		if *left--; *left < 0 {
			break
		}
		if e.IsDir() {
			out = append(out, path.Join(in.Dir, e.Name()))
		}
	}
	return out
}
