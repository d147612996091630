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

// repository protects the repository of a working tree, and gives its git directory; ""
// for none. What only points to that is held in the top of a tree, and in the
// repository that the command works in, whose root decides which project policies
// count: elsewhere git worktree remove and git submodule deinit would fail half-way.
func (c *protector) repository(tree string) string {
	dot, top := path.Join(tree, ".git"), ""
	if within := c.within(tree); tree == within || tree == c.repo {
		top = within
	}
	st, err := c.host.Lstat(dot)
	switch {
	case err != nil:
		c.watch(Watched{Path: dot, missing: errors.Is(err, fs.ErrNotExist)})
		return ""
	case st.Mode.IsDir():
		c.index(dot, tree)
		c.gitDir(dot)
		if common, err := c.named(path.Join(dot, "commondir"), ""); err == nil && c.writable(common) {
			c.gitDir(common)
		}
		return dot
	case !st.Mode.IsRegular():
		c.add(dot, top)
		return dot
	}
	// A linked worktree or a submodule: the file names the directory.
	if top != "" {
		c.add(dot, top)
	} else {
		c.watch(Watched{Path: dot})
	}
	dir, err := c.named(dot, "gitdir: ")
	if err != nil {
		return dot
	}
	if !c.writable(dir) {
		return dir
	}
	c.index(dir, tree)
	common, err := c.named(path.Join(dir, "commondir"), "")
	if err != nil {
		c.gitDir(dir)
		return dir
	}
	from := c.within(dir)
	if c.writable(common) {
		from = c.gitTop(common)
	}
	for _, name := range []string{"commondir", "gitdir"} {
		if top != "" {
			c.add(path.Join(dir, name), from)
		}
	}
	c.worktree(dir, from)
	if c.writable(common) {
		c.gitDir(common)
	}
	return dir
}

// named is the directory that a file of a repository names.
func (c *protector) named(file, prefix string) (string, error) {
	dir, links, err := c.host.GitDir(file, prefix)
	c.watchWay(links, err)
	return dir, err
}

// around protects what lies in writable directories of a repository that is not writable
// itself, and is read or run by git there: what its configuration includes, and hooks
// that are kept in the working tree.
func (c *protector) around(tree string) {
	dir := path.Join(tree, ".git")
	if st, err := c.host.Lstat(dir); err != nil || !st.Mode.IsDir() { // a linked worktree or a submodule
		dir, _ = c.named(dir, "gitdir: ")
		if common, err := c.named(path.Join(dir, "commondir"), ""); err == nil {
			dir = common
		}
	}
	c.includes(path.Join(dir, "config"))
	c.linked(path.Join(dir, "hooks"))
}

// gitlinks protects the repositories that git status looks into from a working tree, at
// whatever depth, and those that it would if they were there. They need not be submodules:
// .gitmodules is the command's to write.
func (c *protector) gitlinks(tree string, links []string, left *int) {
	for _, p := range links {
		sub := path.Join(tree, p)
		if *left--; *left < 0 {
			return
		}
		if !below(sub, tree) {
			continue
		}
		if real, _, err := c.host.RealPath(sub); err == nil && real != sub { // git looks through no link
			c.watch(Watched{Path: path.Join(sub, ".git")})
			continue
		}
		c.gitlinks(sub, c.links(c.repository(sub)), left)
	}
}

// links are the gitlinks in the index of a git directory, or of none, "".
func (c *protector) links(git string) []string {
	if git == "" {
		return nil
	}
	return indexed(path.Join(git, "index"), &c.bytes)
}

// linksAhead reads a big index while its caller looks at other things than indexes: 100,000
// files take a millisecond, and to wake a thread a tenth of that.
func (c *protector) linksAhead(git string) func() []string {
	const big = 1 << 20
	if s, _ := stateOf(path.Join(git, "index")); s.size < big {
		return func() []string { return c.links(git) }
	}
	read := make(chan []string, 1)
	go func() { read <- c.links(git) }()
	return func() []string { return <-read }
}

// index watches which repositories git looks into from a working tree.
func (c *protector) index(dir, tree string) {
	c.watch(Watched{Path: path.Join(dir, "index"), tree: tree, ByGit: true})
}

// gitTop is the directory from which on a git directory is held.
func (c *protector) gitTop(dir string) string {
	if c.within(dir) == dir {
		return dir
	}
	return path.Dir(dir)
}

// gitDir protects a git directory, the submodules' and the linked worktrees'
// directories in it included.
func (c *protector) gitDir(dir string) {
	if c.seen[dir] {
		return
	}
	c.seen[dir] = true
	top, left := c.gitTop(dir), nestedModules
	c.pin(dir, top)
	c.gitFiles(dir, top, &left)
}

// gitFiles protects the files of one git directory by which git can be made to run
// programs, and those of what lies in it. The file commondir would have it read another
// directory's configuration; lazygit.yml is lazygit's.
func (c *protector) gitFiles(dir, top string, left *int) {
	config := path.Join(dir, "config")
	if c.add(config, top) {
		c.out.Repos = append(c.out.Repos, dir)
	}
	for _, name := range []string{"hooks", "commondir", "lazygit.yml"} {
		c.add(path.Join(dir, name), top)
	}
	c.includes(config)
	c.byGit(dir, "remotes", "branches") // where git push looks for what the configuration lacks
	c.ownFiles(dir, top)
	for _, sub := range c.subdirs(path.Join(dir, "worktrees"), left) {
		c.worktree(sub, top)
	}
	c.modules(path.Join(dir, "modules"), top, left)
}

func (c *protector) worktree(dir, top string) {
	c.watch(Watched{Path: path.Join(dir, "commondir")})
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
		c.watch(Watched{Path: path.Join(dir, name), ByGit: true})
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
		} else {
			c.gitFiles(sub, top, left)
		}
	}
}

// Git looks for a repository from the working directory upwards, so that each
// directory of a writable tree can become one. Those near the top are looked
// at before the command, to protect the repositories that are there, and to tell
// afterwards of those that were made in them.

// The bounds of the search, so that it costs the same in a tree of any size.
const (
	nestedEntries = policy.MaxListed // directory entries looked at, for each tree
	nestedModules = 256              // submodules and linked worktrees, for each repository
)

// What is looked for in a directory near the top.
const dotGit, projectFile = "/.git", "/" + policy.ProjectFile

// near looks for repositories and projects' policies in the directories near the top of a
// writable tree, two levels deep, the nearest first, and gives those that may have one.
func (c *protector) near(top *policy.Listing) (some []string) {
	left := nestedEntries
	look := func(in *policy.Listing) (out []string) {
		for _, sub := range subdirs(in, &left) {
			if name := path.Base(sub); name == ".git" || name == "node_modules" {
				continue
			}
			if out = append(out, sub); c.lacks(sub+dotGit) && c.lacks(sub+projectFile) {
				c.out.Near = append(c.out.Near, sub)
				continue
			}
			some = append(some, sub)
		}
		return out
	}
	for _, dir := range look(top) {
		if left >= 0 {
			look(policy.List(c.host, dir))
		}
	}
	return some
}

// lacks reports whether it is certain that a path does not exist.
func (c *protector) lacks(p string) bool {
	_, err := c.host.Lstat(p)
	return errors.Is(err, fs.ErrNotExist)
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
