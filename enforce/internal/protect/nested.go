package protect

import (
	"path"
	"slices"
	"time"

	"github.com/zsbx/zsbx/policy"
)

// Git looks for a repository from the working directory upwards, so that each
// directory of a writable tree can become one. Those near the top are looked
// at before the command, to protect the repositories that are there, and once
// more after it, to tell of those that were not.

// The bounds of the search, so that it costs the same in a tree of any size.
const (
	nestedDepth   = 2   // directories below the tree
	nestedEntries = 256 // directory entries looked at before, for each tree
	newEntries    = 512 // and after: the command may have made some to hide behind
	nestedModules = 256 // submodules and linked worktrees, for each repository
)

// nearby is what was found before the command.
type nearby struct {
	trees   []nearTree
	gitDirs []string
	modules []string // git directories of submodules, below gitDirs
}

// nearTree is one writable tree.
type nearTree struct {
	dir   string
	dirs  []string // that were looked at
	repos []string // those of them that have a .git
	rules []string // those of them that have a policy
	all   bool     // that was all of them
}

// nearPolicy is the policy of a project, which counts for the directories below
// as well.
const nearPolicy = ".zsbx.toml"

// nested looks for repositories in the directories near the top of a writable
// tree.
func (c *protector) nested(dir string) {
	t := nearTree{dir: dir}
	t.all = walkNear(c.host, dir, nestedEntries, func(sub string) {
		t.dirs = append(t.dirs, sub)
		if c.repository(sub) {
			t.repos = append(t.repos, sub)
		}
		if _, err := c.host.Lstat(sub + "/" + nearPolicy); err == nil {
			t.rules = append(t.rules, sub)
			c.add(sub+"/"+nearPolicy, "")
		}
	})
	c.out.Near.trees = append(c.out.Near.trees, t)
}

// walkNear visits the directories near the top of a tree, the nearest first,
// and reports whether that was all of them.
func walkNear(host *policy.Host, dir string, left int, visit func(sub string)) bool {
	level := []string{dir}
	for range nestedDepth {
		var next []string
		for _, d := range level {
			for _, sub := range subdirs(host, d, &left) {
				if name := path.Base(sub); name != ".git" && name != "node_modules" {
					visit(sub)
					next = append(next, sub)
				}
			}
			if left < 0 {
				return false
			}
		}
		level = next
	}
	return true
}

// subdirs lists directories, as long as some entries are left to be looked at;
// left becomes negative when there were more.
func subdirs(host *policy.Host, dir string, left *int) []string {
	if *left < 0 {
		return nil
	}
	entries, err := policy.ReadSome(host, dir, *left+1)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if *left--; *left < 0 {
			break
		}
		if e.IsDir() {
			out = append(out, path.Join(dir, e.Name()))
		}
	}
	return out
}

// The status change time can't be set back, but comes from a clock that ticks
// coarsely, and on a network from another machine.
const (
	coarse = 20 * time.Millisecond // before the start: taken for a change since
	skewed = 2 * time.Second       // enough to look at a directory once more
)

// changes are the repositories that are new since start. Where not all
// directories were looked at before, a repository counts by when its files
// were written, and so does a bare one everywhere.
func (n *nearby) changes(host *policy.Host, start time.Time) []Change {
	var out []Change
	for i := range n.trees {
		l := lookAgain{host: host, near: n, tree: &n.trees[i], start: start, left: newEntries}
		l.known()
		out = append(out, l.out...)
	}
	for _, dir := range n.gitDirs {
		left := nestedModules
		out = append(out, n.newModules(host, dir+"/modules", &left)...)
	}
	return out
}

// lookAgain is the search after the command, in one tree.
type lookAgain struct {
	host  *policy.Host
	near  *nearby
	tree  *nearTree
	start time.Time
	left  int
	out   []Change
}

// known looks at the directories that were looked at before, and at what is
// new in those that have changed.
func (l *lookAgain) known() {
	l.check(l.tree.dir, true, false) // a bare one: its .git is looked at by name
	l.list(l.tree.dir, nestedDepth)
	for _, dir := range l.tree.dirs {
		changed := l.changed(dir)
		l.check(dir, true, changed)
		if changed && path.Dir(dir) == l.tree.dir {
			l.list(dir, nestedDepth-1)
		}
	}
}

// changed reports whether names may have come into a directory.
func (l *lookAgain) changed(dir string) bool {
	st := fileState{}
	_, ok := st.look(dir)
	return ok && st.since(l.start.Add(-skewed))
}

// list looks at the directories in one that were not looked at before.
func (l *lookAgain) list(dir string, depth int) {
	if depth == 0 || dir == l.tree.dir && !l.changed(dir) {
		return
	}
	for _, sub := range subdirs(l.host, dir, &l.left) {
		if name := path.Base(sub); name != ".git" && name != "node_modules" && !slices.Contains(l.tree.dirs, sub) {
			l.check(sub, false, true)
			l.list(sub, depth-1)
		}
	}
}

// check reports whether there is a repository that was not there before.
func (l *lookAgain) check(dir string, known, changed bool) {
	if changed && !slices.Contains(l.tree.rules, dir) {
		st, file := fileState{}, dir+"/"+nearPolicy
		if _, ok := st.look(file); ok && (known || l.tree.all || st.since(l.start.Add(-coarse))) {
			l.out = append(l.out, Change{Path: file, New: known || l.tree.all})
		}
	}
	if changed && !slices.Contains(l.tree.repos, dir) {
		st, git := fileState{}, dir+"/.git"
		if mode, ok := st.look(git); ok {
			switch fresh := known || l.tree.all; {
			case fresh:
				l.out = append(l.out, Change{Path: git, New: true})
			case mode.IsDir() && l.written(git), !mode.IsDir() && st.since(l.start.Add(-coarse)):
				l.out = append(l.out, Change{Path: git})
			}
			return
		}
	}
	if isGitDir(l.host, dir) && !slices.Contains(l.near.gitDirs, dir) && l.written(dir) {
		l.out = append(l.out, Change{Path: dir, New: !known && l.tree.all})
	}
}

// written reports whether the configuration or the hooks of a git directory were
// written since the start.
func (l *lookAgain) written(dir string) bool {
	names := []string{"config", "config.worktree", "commondir", "hooks"}
	hooks, _ := policy.ReadSome(l.host, dir+"/hooks", maxWatchedEntries)
	for _, h := range hooks {
		names = append(names, "hooks/"+h.Name())
	}
	return slices.ContainsFunc(names, func(name string) bool {
		st := fileState{}
		_, ok := st.look(dir + "/" + name)
		return ok && st.since(l.start.Add(-coarse))
	})
}

// newModules are git directories of submodules that were not there before: git
// uses what it finds there when the submodule is fetched the next time.
func (n *nearby) newModules(host *policy.Host, dir string, left *int) []Change {
	var out []Change
	for _, sub := range subdirs(host, dir, left) {
		switch {
		case !isGitDir(host, sub):
			out = append(out, n.newModules(host, sub, left)...)
		case !slices.Contains(n.modules, sub):
			out = append(out, Change{Path: sub, New: true})
		default:
			out = append(out, n.newModules(host, sub+"/modules", left)...)
		}
	}
	return out
}

// since reports whether the file was changed at that time or later.
func (s *fileState) since(t time.Time) bool {
	return !time.Unix(s.changed[0], s.changed[1]).Before(t)
}
