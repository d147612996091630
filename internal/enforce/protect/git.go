package protect

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// Git runs programs from its configuration and its hooks whenever a prompt, an editor or the
// user calls it in the working tree. This file finds these files as in gitrepository-layout(5).

// repository protects the repository of a working tree and returns its git directory, or "" if
// there is none. It protects a .git that is a file or a link, which only leads to the git
// directory, at the top of a tree and in the repository that the command works in, whose root
// decides which project policies count. Elsewhere that would make git worktree remove and git
// submodule deinit fail half-way.
func (c *protector) repository(tree string) string {
	dot := path.Join(tree, ".git")
	top := ""
	if within := c.within(tree); tree == within || tree == c.repo {
		top = within
	}
	at := c.host.Look(dot)
	if at.Presence == host.Unknown {
		c.unknown(dot, at.Err)
		return ""
	}
	if at.Presence == host.Absent {
		c.compare(Compared{Path: dot, Kind: Missing})
		return ""
	}
	if at.IsDir() {
		c.ordinary(dot, tree)
		return dot
	}
	if !at.IsRegular() && !at.IsLink() {
		c.add(dot, top)
		return dot
	}
	dir := c.elsewhere(dot, at, top)
	if dir == "" {
		return dot
	}
	c.away(dir, tree, top)
	return dir
}

// ordinary protects a git directory in its working tree.
func (c *protector) ordinary(dot, tree string) {
	c.index(dot, tree)
	c.gitDir(dot)
	common, err := c.named(path.Join(dot, "commondir"), "")
	if err != nil {
		common = dot
	}
	if c.writable(common) {
		c.gitDir(common)
	}
	c.configured(dot, common, tree)
}

// away protects a git directory to which a .git leads.
func (c *protector) away(dir, tree, top string) {
	common, err := c.named(path.Join(dir, "commondir"), "")
	if err != nil {
		common = dir
	}
	c.configured(dir, common, tree)
	if !c.writable(dir) {
		return
	}
	c.index(dir, tree)
	if top != "" {
		c.pin(dir, c.within(dir))
	}
	if err != nil {
		c.gitDir(dir)
		return
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
}

// elsewhere returns the directory to which a .git leads that is a file, as in a linked worktree or
// a submodule, or a link; "" if there is none. It protects .git itself if top is set.
func (c *protector) elsewhere(dot string, at host.Found, top string) string {
	if at.IsLink() {
		to := c.host.Way(dot)
		c.compareLinks(to.Links)
		if to.IsDir() {
			if top != "" {
				c.pinLink(dot, top)
			}
			return to.Path
		}
	}
	if top != "" || at.IsLink() {
		c.add(dot, top)
	} else {
		c.compare(Compared{Path: dot})
	}
	dir, err := c.named(dot, "gitdir: ")
	if err != nil {
		return ""
	}
	return dir
}

// named returns the directory that a file of a repository names.
func (c *protector) named(file, prefix string) (string, error) {
	dir, links, err := c.host.GitDir(file, prefix)
	c.compareWay(links, err)
	c.unsure(file, dir, err)
	return dir, err
}

// unsure protects what a file of a repository names if it is not known what that is.
func (c *protector) unsure(file, dir string, err error) {
	switch {
	case host.Unsure(err) && dir != "":
		c.unknown(dir, err)
	case host.Unsure(err):
		c.unread(file, err)
	}
}

// around protects what git reads or runs in writable directories of a repository that is not
// writable itself: files that its configuration includes, and hooks in the working tree.
func (c *protector) around(tree string) {
	dir := path.Join(tree, ".git")
	if at := c.host.Look(dir); !at.IsDir() {
		dir = c.elsewhere(dir, at, "")
	}
	if dir == "" {
		return
	}
	common, err := c.named(path.Join(dir, "commondir"), "")
	if err != nil {
		common = dir
	}
	c.configured(dir, common, tree)
	dir = common
	c.includes(path.Join(dir, "config"))
	c.linked(path.Join(dir, "hooks"))
}

// gitlinks protects the repositories that git status looks into from a working tree, at any
// depth, whether they exist yet or not. They need not be submodules, since the command can
// write .gitmodules.
func (c *protector) gitlinks(tree string, links []string, left *int) {
	for _, p := range links {
		sub := path.Join(tree, p)
		if !c.more(left, tree) {
			return
		}
		if !below(sub, tree) {
			continue
		}
		if to := c.host.Way(sub); to.Presence == host.Present && to.Path != sub { // git does not follow links
			c.compare(Compared{Path: path.Join(sub, ".git")})
			continue
		}
		c.gitlinks(sub, c.links(c.repository(sub)), left)
	}
}

// links returns the gitlinks in the index of a git directory, none for "".
func (c *protector) links(git string) []string {
	if git == "" {
		return nil
	}
	file := path.Join(git, "index")
	links, err := indexed(file, &c.bytes)
	if err != nil {
		c.unread(file, err)
	}
	if err != nil && c.host.Failed != nil {
		c.host.Failed(err)
	}
	return links
}

// linksAhead reads a big index in the background. An index of 100,000 files takes a
// millisecond; waking a thread takes a tenth of that. Until it has called the result, the
// caller may not read other indexes.
func (c *protector) linksAhead(git string) func() []string {
	const big = 1 << 20
	if s, _ := stateOf(path.Join(git, "index")); s.size < big { // 0 if it is not known
		return func() []string { return c.links(git) }
	}
	read := make(chan []string, 1)
	go func() { read <- c.links(git) }()
	return func() []string { return <-read }
}

// index compares an index, since its gitlinks are the repositories that git looks into.
func (c *protector) index(dir, tree string) {
	c.compare(Compared{Path: path.Join(dir, "index"), Kind: Index, tree: tree})
}

// gitTop returns the directory below which the way to a git directory is pinned.
func (c *protector) gitTop(dir string) string {
	if c.within(dir) == dir {
		return dir
	}
	return path.Dir(dir)
}

// gitDir protects a git directory, and those of submodules and linked worktrees in it.
func (c *protector) gitDir(dir string) {
	if c.seen[dir] {
		return
	}
	c.seen[dir] = true
	top := c.gitTop(dir)
	left := nestedModules
	c.pin(dir, top)
	c.gitFiles(dir, top, &left)
}

// gitNames are names in a git directory, beside config, with which programs can be made to run others.
// A file commondir would make git read another directory's configuration. lazygit.yml, glab-cli and sl
// (Sapling's) have other programs' settings.
var gitNames = []string{
	"hooks", "commondir", "lazygit.yml", "glab-cli", "sl/config", "sl/requires", "sl/sharedpath",
}

// gitWrites are those that git, or Sapling, writes itself. git push looks in the first two for
// remotes that the configuration lacks.
var gitWrites = []string{"remotes", "branches", "sl/config-git-user", "sl/config-git-repo"}

// worktreeWrites are those that git writes for each working tree. git rebase --continue executes
// commands from there. git cherry-pick --continue can, too, since a merge strategy is a program. git
// am --continue writes a file named there.
var worktreeWrites = []string{"rebase-merge", "rebase-apply", "sequencer/opts"}

// gitFiles protects files with which git can be made to run programs, in one git directory and
// in those below it.
func (c *protector) gitFiles(dir, top string, left *int) {
	config := path.Join(dir, "config")
	if c.add(config, top) {
		c.out.Repos = append(c.out.Repos, dir)
	}
	for _, name := range gitNames {
		c.add(path.Join(dir, name), top)
	}
	c.includes(config)
	c.byGit(dir, gitWrites...)
	c.worktreeFiles(dir, top)
	objects := path.Join(dir, "objects")
	if strings.Contains(dir, "/.repo/projects/") && c.host.Look(objects).IsLink() {
		c.compare(Compared{Path: objects}) // the next run opens what it leads to
		c.pinLink(objects, top)
	}
	for _, sub := range c.subdirs(path.Join(dir, "worktrees"), left) {
		c.worktree(sub, top)
		back := path.Join(sub, "gitdir")
		dot, _, err := c.host.GitDir(back, "")
		c.unsure(back, dot, err)
		if path.Base(dot) == ".git" && c.writable(dot) {
			c.configured(sub, dir, path.Dir(dot))
		}
	}
	c.modules(path.Join(dir, "modules"), top, left)
}

func (c *protector) worktree(dir, top string) {
	c.compare(Compared{Path: path.Join(dir, "commondir")})
	c.worktreeFiles(dir, top)
}

// worktreeFiles protects the files that each working tree has for itself, and compares those that
// git itself writes.
func (c *protector) worktreeFiles(dir, top string) {
	if config := path.Join(dir, "config.worktree"); c.add(config, top) {
		c.includes(config)
	}
	c.byGit(dir, worktreeWrites...)
}

// byGit compares files that git itself may write in a git directory. They are not mounted, and so
// they do not count.
func (c *protector) byGit(dir string, names ...string) {
	for _, name := range names {
		c.note(Compared{Path: path.Join(dir, name), Kind: ByGit})
	}
}

// isBare reports whether a directory may be a bare repository. It does not look for refs, which
// a command may have moved away. The parts may be links (git-new-workdir).
func (c *protector) isBare(dir string) bool {
	if head := c.host.Look(path.Join(dir, "HEAD")); head.Presence == host.Absent || head.IsDir() {
		return false
	}
	objects := c.host.Way(path.Join(dir, "objects"))
	return objects.Presence == host.Unknown || objects.IsDir()
}

// modules protects the git directories of submodules. A submodule's name may have slashes, so a
// directory that is no git directory may contain some. A directory with a file config counts as
// one: config is protected, while a command can remove the other files before the next session.
func (c *protector) modules(dir, top string, left *int) {
	for _, sub := range c.subdirs(dir, left) {
		config := c.host.Look(path.Join(sub, "config"))
		if config.Presence == host.Unknown {
			c.unknown(sub, config.Err)
		}
		if (config.Presence == host.Absent || config.IsDir()) && c.host.IsGitDir(sub) == host.Absent {
			c.modules(sub, top, left)
		} else {
			c.gitFiles(sub, top, left)
		}
	}
}

// Git looks for a repository from the working directory upwards, so any directory of a writable
// tree can become one. Directories near the top are searched before the command: to protect
// repositories that exist, and to report new ones afterwards.

// nestedEntries keeps the search cheap in a tree of any size: it limits the directory entries, for
// each tree.
const nestedEntries = host.MaxListed

// The names that are looked for in a directory near the top.
const dotGit, projectFile = "/.git", "/" + resolve.ProjectFile

// near looks for repositories and project policies near the top of a writable tree, two levels
// deep, the upper level first. It returns the directories that may have one.
func (c *protector) near(top *host.Listing) (some []string) {
	left := nestedEntries
	look := func(in *host.Listing) (out []string) {
		for _, sub := range subdirs(in, &left) {
			if name := path.Base(sub); name == ".git" || name == "node_modules" {
				continue
			}
			out = append(out, sub)
			if c.lacks(sub+dotGit) && c.lacks(sub+projectFile) {
				c.out.Near = append(c.out.Near, sub)
				continue
			}
			some = append(some, sub)
		}
		return out
	}
	for _, dir := range look(top) {
		if left >= 0 {
			look(c.list(dir))
		}
	}
	return some
}

// lacks reports whether it is certain that a path does not exist.
func (c *protector) lacks(p string) bool { return c.host.Look(p).Presence == host.Absent }

// list lists a directory that may have others that matter. If that is impossible, it protects
// the directory.
func (c *protector) list(dir string) *host.Listing {
	in := host.List(c.host, dir)
	if in.Unread != nil {
		c.unknown(dir, in.Unread)
	}
	return in
}

// nestedModules limits the submodules and linked worktrees, for each repository. Each entry of a
// directory of them counts.
const nestedModules = maxProtected

// more counts a submodule or a linked worktree in dir. It returns false if there were too many,
// and adds a fact about the first of these.
func (c *protector) more(left *int, dir string) bool {
	*left--
	if *left == -1 {
		c.out.Facts = append(c.out.Facts, Fact{
			Promise: "no change of what git runs or trusts in more submodules and worktrees in " + dir,
			Why:     fmt.Sprintf("only %d of a repository's are looked at", nestedModules),
		})
	}
	return *left >= 0
}

// subdirs lists the directories in one that has those of submodules or linked worktrees, and what
// links there lead to. If it can't be listed, it is protected.
func (c *protector) subdirs(dir string, left *int) (out []string) {
	in := host.ListAll(c.host, dir)
	if in.Unread != nil {
		c.unknown(dir, in.Unread)
	}
	for _, e := range in.All {
		if !c.more(left, dir) {
			break
		}
		sub := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			out = append(out, sub)
		case e.Type()&fs.ModeSymlink != 0:
			out = append(out, c.linkedDir(sub)...)
		}
	}
	slices.Sort(out)
	return out
}

// linkedDir returns the writable directory that a link leads to, if any.
func (c *protector) linkedDir(link string) []string {
	to := c.host.Way(link)
	c.compareLinks(to.Links)
	switch {
	case to.Presence == host.Unknown:
		c.unknown(link, to.Err)
	case to.IsDir() && c.writable(to.Path):
		return []string{to.Path}
	}
	return nil
}

// subdirs lists directories. It decreases left for each entry, and stops when left becomes
// negative.
func subdirs(in *host.Listing, left *int) []string {
	var out []string
	for _, e := range in.Entries {
		*left--
		if *left < 0 {
			break
		}
		if e.IsDir() {
			out = append(out, path.Join(in.Dir, e.Name()))
		}
	}
	return out
}
