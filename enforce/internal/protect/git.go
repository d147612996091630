package protect

import (
	"errors"
	"io/fs"
	"path"

	"github.com/zsbx/zsbx/policy"
)

// Git runs programs that its configuration and its hooks name, whenever it is
// used in the working tree: by a prompt, by an editor, by the user. These
// files are protected as gitrepository-layout(5) lays them out.

// repository protects the repository of a working tree, if there is one.
func (c *protector) repository(tree string) bool {
	dot := path.Join(tree, ".git")
	st, err := c.host.Lstat(dot)
	switch {
	case err != nil:
		c.seen[dot] = true
		c.out.Watch = append(c.out.Watch, Watched{Path: dot, missing: errors.Is(err, fs.ErrNotExist)})
		return false
	case st.Mode.IsDir():
		c.index(dot, tree)
		c.gitDir(dot)
		return true
	case !st.Mode.IsRegular():
		c.add(dot, "")
		return true
	}
	// A linked worktree or a submodule: the file names the directory.
	if tree == c.within(tree) {
		c.add(dot, "")
	} else {
		c.watchOnly(dot)
	}
	dir, err := c.host.GitDir(dot, "gitdir: ")
	if err != nil || !c.writable(dir) {
		return true
	}
	c.index(dir, tree)
	common, err := c.host.GitDir(path.Join(dir, "commondir"), "")
	if err != nil {
		c.gitDir(dir)
		return true
	}
	top := c.within(dir)
	if c.writable(common) {
		top = c.gitTop(common)
	}
	if tree == c.within(tree) { // it can't be removed from inside
		c.add(path.Join(dir, "commondir"), top)
		c.add(path.Join(dir, "gitdir"), top)
	}
	c.worktree(dir, top)
	if c.writable(common) {
		c.gitDir(common)
	}
	return true
}

// gitlinks protects the repositories that git status looks into from a working tree with
// submodules, at whatever depth, and those that it would if they were there.
func (c *protector) gitlinks(tree string, left *int) {
	git := path.Join(tree, ".git")
	if dir, err := c.host.GitDir(git, "gitdir: "); err == nil {
		git = dir
	}
	for _, p := range indexed(path.Join(git, "index"), &c.bytes) {
		sub := path.Join(tree, p)
		if *left--; *left < 0 {
			return
		}
		if !policy.Within(sub, tree) || !c.repository(sub) {
			continue
		}
		if _, err := c.host.Lstat(path.Join(sub, ".gitmodules")); err == nil {
			c.gitlinks(sub, left)
		}
	}
}

// index watches which repositories git looks into from a working tree.
func (c *protector) index(dir, tree string) {
	if p := path.Join(dir, "index"); !c.seen[p] {
		c.seen[p] = true
		c.out.Watch = append(c.out.Watch, Watched{Path: p, tree: tree, ByGit: true})
	}
}

// gitTop is the directory from which on a git directory is held.
func (c *protector) gitTop(dir string) string {
	if c.within(dir) == dir {
		return dir
	}
	return path.Dir(dir)
}

// around protects the repository that the command works in. Its root decides
// which project policies count (its .git must stay), wherever in a writable tree
// it lies.
func (c *protector) around(root string) {
	if root == "" || !c.writable(root) {
		return
	}
	if dot := path.Join(root, ".git"); !c.isDir(dot) {
		c.add(dot, c.within(root))
	}
	c.repository(root)
}

func (c *protector) isDir(p string) bool {
	st, err := c.host.Lstat(p)
	return err == nil && st.Mode.IsDir()
}

// gitDir protects a git directory, the submodules' and the linked worktrees'
// directories in it included.
func (c *protector) gitDir(dir string) {
	if c.seen[dir] {
		return
	}
	c.seen[dir] = true
	top := c.gitTop(dir)
	c.pin(dir, top)
	c.gitFiles(dir, top)
	left := nestedModules
	c.worktrees(path.Join(dir, "worktrees"), top, &left)
	c.modules(path.Join(dir, "modules"), top, &left)
}

// gitFiles protects the files of one git directory by which git can be made
// to run programs. The file commondir would have it read another directory's
// configuration.
func (c *protector) gitFiles(dir, top string) {
	for _, name := range []string{"config", "hooks", "commondir"} {
		c.add(path.Join(dir, name), top)
	}
	c.includes(path.Join(dir, "config"))
	c.byGit(dir, "remotes", "branches") // where git push looks for what the configuration lacks
	c.ownFiles(dir, top)
}

// worktrees protects what linked worktrees have of their own. Where a worktree
// has no configuration of its own, its directory is watched only, and so is the
// pointer in the working tree: git worktree remove and git submodule deinit
// would fail half-way.
func (c *protector) worktrees(dir, top string, left *int) {
	for _, sub := range c.subdirs(dir, left) {
		c.worktree(sub, top)
	}
}

func (c *protector) worktree(dir, top string) {
	c.watchOnly(path.Join(dir, "commondir"))
	c.ownFiles(dir, top)
}

// ownFiles protects what each working tree has of its own, and watches what git itself
// writes: git rebase --continue executes what it finds there, and so does git cherry-pick
// --continue, a strategy of merging being a program.
func (c *protector) ownFiles(dir, top string) {
	if own := path.Join(dir, "config.worktree"); c.add(own, top) {
		c.includes(own)
	}
	c.byGit(dir, "rebase-merge", "sequencer/opts")
}

// byGit watches what git itself may write in a git directory.
func (c *protector) byGit(dir string, names ...string) {
	for _, name := range names {
		if p := path.Join(dir, name); !c.seen[p] {
			c.seen[p] = true
			c.out.Watch = append(c.out.Watch, Watched{Path: p, ByGit: true})
		}
	}
}

// watchOnly has a change told when the command has ended.
func (c *protector) watchOnly(p string) {
	if !c.seen[p] {
		c.seen[p] = true
		c.out.Watch = append(c.out.Watch, Watched{Path: p})
	}
}

// isBare tells a repository without a working tree by as little as may be one, links
// included (git-new-workdir): where refs is missing, a command may have moved it away.
func (c *protector) isBare(dir string) bool {
	head, err := c.host.Lstat(path.Join(dir, "HEAD"))
	if err != nil || head.Mode.IsDir() {
		return false
	}
	_, objects, err := c.host.RealPath(path.Join(dir, "objects"))
	return err == nil && objects.Mode.IsDir()
}

// modules protects the git directories of submodules. A submodule's name may
// have slashes: what is no git directory may hold some. Which one is goes by the
// configuration, too: a command can't take that away, as it can the rest until the next.
func (c *protector) modules(dir, top string, left *int) {
	for _, sub := range c.subdirs(dir, left) {
		if st, err := c.host.Lstat(path.Join(sub, "config")); (err != nil || st.Mode.IsDir()) && !c.host.IsGitDir(sub) {
			c.modules(sub, top, left)
			continue
		}
		c.gitFiles(sub, top)
		c.worktrees(path.Join(sub, "worktrees"), top, left)
		c.modules(path.Join(sub, "modules"), top, left)
	}
}
