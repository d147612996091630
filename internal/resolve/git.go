package resolve

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// A repository is where git keeps what belongs to a working tree.
type repository struct {
	tree    string // the working tree's top
	gitDir  string // tree/.git, or the directory to which that leads
	common  string // the directory that a linked worktree shares; otherwise gitDir
	objects string // the directory of objects, if that is elsewhere and belongs to the tree, too
}

var errNoRepository = errors.New("no git repository")

// git adds the repository of the working directory if the git preset is in use.
func (rs *resolver) git(presets []policy.Named) {
	if !slices.ContainsFunc(presets, func(n policy.Named) bool { return n.Value == "git" }) {
		return
	}
	rules, skipped, refused := gitRules(&rs.host.Host, rs.userAccess)
	for _, rule := range rules {
		rs.rule(rule)
	}
	rs.r.Skipped = append(rs.r.Skipped, skipped...)
	rs.r.unproved = refused
}

// gitRules returns the rules that the git preset needs for the repository of the working
// directory: for its git directory, its common directory and the file that names them, if
// they are outside the working tree or above the working directory. They get the access
// that the working tree has: allowed returns what the user's rules allow on a canonical
// path. If only the working directory is writable and not the tree's top, the repository
// is only readable.
//
// A file or a link named .git is part of the project, which may be hostile. The directory to
// which it leads is used only if that proves that it belongs to this working tree: what can
// be said of it stands in files there, which the project can't write. Otherwise it is skipped.
// Alternate object stores are never followed, because the file that names them proves nothing.
func gitRules(
	h *host.Host, allowed func(p string) policy.Access,
) (rules []policy.Rule, skipped []Skip, refused unproved) {
	rule := policy.Rule{Optional: true, Origin: policy.Origin{Source: "preset git"}}
	r, err := findRepository(h, path.Clean(h.Dir))
	if errors.Is(err, errNoRepository) {
		return nil, nil, unproved{}
	}
	if errors.Is(err, errUnproved) && h.IsGitDir(r.common) != host.Absent { // git would use nothing else
		refused = unproved{
			from:   path.Join(r.tree, ".git"),
			dir:    r.gitDir,
			owner:  ownerOf(h, r),
			access: policy.Read | allowed(r.tree),
		}
	}
	if err != nil {
		rule.Path = r.gitDir
		rule.Access = policy.Read
		return nil, []Skip{{Rule: rule, Reason: err.Error()}}, refused
	}
	rule.Access = policy.Read | allowed(r.tree)
	for _, dir := range []string{r.common, r.gitDir, path.Join(r.tree, ".git"), r.objects} {
		if dir == "" {
			continue
		}
		rule.Path = h.Way(dir).Path
		opens := func(had policy.Rule) bool { return host.Within(rule.Path, had.Path) }
		if rule.Access&^allowed(rule.Path) != 0 && !slices.ContainsFunc(rules, opens) {
			rules = append(rules, rule)
		}
	}
	return rules, nil, borrowed(h, r, rule.Access)
}

// findRepository looks for .git in dir and above. If it returns another error than
// errNoRepository, gitDir is what the refused .git names.
func findRepository(h *host.Host, dir string) (repository, error) {
	for {
		dot := path.Join(dir, ".git")
		at := h.Look(dot)
		if at.IsDir() {
			return repository{tree: dir, gitDir: dot, common: dot}, nil
		}
		switch at.Presence {
		case host.Present:
			return linkedRepository(h, dir, dot, at.IsLink())
		case host.Unknown:
			return repository{tree: dir, gitDir: dot}, fmt.Errorf("%s: %w", dot, at.Err)
		}
		if dir == "/" {
			return repository{}, errNoRepository
		}
		dir = path.Dir(dir)
	}
}

// errUnproved says that nothing proves that a git directory belongs to the working tree.
var errUnproved = errors.New("which does not say that it belongs to this working tree")

// linkedRepository follows tree/.git, which is a link, or a file as in a linked worktree or a
// submodule, and checks that the directory belongs to the tree.
func linkedRepository(h *host.Host, tree, dot string, link bool) (repository, error) {
	r := repository{tree: tree, gitDir: dot}
	named := dot
	if !link {
		in, err := h.GitPointer(dot, "gitdir: ")
		if err != nil {
			return r, err
		}
		named = in
	}
	real, err := h.RealDir(named)
	r.gitDir = real
	if err != nil {
		return r, fmt.Errorf("%s names %s: %w", dot, named, err)
	}
	r.common = real
	if worktrees := path.Dir(real); path.Base(worktrees) == "worktrees" {
		r.common = path.Dir(worktrees)
	}
	if h.IsGitDir(r.common) == host.Present && belongs(h, r) {
		return r, nil
	}
	r.objects = repoObjects(h, r)
	if r.objects != "" {
		return r, nil
	}
	return r, fmt.Errorf("%s names %s, %w", dot, r.gitDir, errUnproved)
}

// belongs reports whether a git directory belongs to the working tree from which it was found: it
// is in the tree, or it names the tree.
func belongs(h *host.Host, r repository) bool {
	if host.Within(r.common, r.tree) && r.common != r.tree {
		return true
	}
	if r.common != r.gitDir {
		return isWorktree(h, r)
	}
	return worktreeOf(h, r.gitDir) == r.tree
}

// isWorktree requires that the directory of a linked worktree is in the repository's
// "worktrees", and names exactly this .git file.
func isWorktree(h *host.Host, r repository) bool {
	back, err := h.GitPointer(path.Join(r.gitDir, "gitdir"), "")
	if err != nil {
		return false
	}
	back, _, err = h.RealPath(back)
	common, _, bad := h.GitDir(path.Join(r.gitDir, "commondir"), "")
	return err == nil && bad == nil && back == path.Join(r.tree, ".git") && common == r.common
}

// worktreeOf returns the canonical working tree that the configuration of a git directory names
// (core.worktree), as that of a submodule does, or "".
func worktreeOf(h *host.Host, gitDir string) string {
	back := coreSetting(h, gitDir, "worktree")
	if back == "" {
		return ""
	}
	if !path.IsAbs(back) {
		back = gitDir + "/" + back
	}
	if back, err := h.RealDir(back); err == nil {
		return back
	}
	return ""
}

// coreSetting returns a setting of the section "core" in the configuration of a git directory.
func coreSetting(h *host.Host, gitDir, key string) (value string) {
	config, _ := h.ReadRegular(path.Join(gitDir, "config")) // harmless: the directory then proves nothing
	settings, _ := gitconfig.Read(config)
	for _, s := range settings {
		if s.Section == "core" && s.Sub == "" && s.Key == key {
			value = s.Value
		}
	}
	return value
}

// repoObjects returns the canonical directory of the objects of a git directory that AOSP's
// repo made for the working tree, or "". The place of such a directory names the tree: that
// of TOP/a/b is TOP/.repo/projects/a/b.git. Its objects are in TOP/.repo/project-objects.
func repoObjects(h *host.Host, r repository) string {
	top, name, found := strings.Cut(r.gitDir, "/.repo/projects/")
	if !found || name != strings.TrimPrefix(r.tree, top+"/")+".git" {
		return ""
	}
	objects, err := h.RealDir(path.Join(r.gitDir, "objects"))
	if err != nil || !h.Look(path.Join(r.gitDir, "HEAD")).IsRegular() {
		return ""
	}
	if host.Within(objects, top+"/.repo/project-objects") && path.Base(objects) == "objects" ||
		objects == path.Join(r.gitDir, "objects") {
		return objects
	}
	return ""
}

// ownerOf returns what a git directory belongs to, if not to the working tree: another working tree,
// the git directory itself if it is bare, or "".
func ownerOf(h *host.Host, r repository) string {
	if outer, _, found := strings.Cut(r.gitDir+"/", "/.git/"); found {
		return outer
	}
	if other := worktreeOf(h, r.gitDir); other != "" {
		return other
	}
	if coreSetting(h, r.common, "bare") == "true" {
		return r.common
	}
	return ""
}

// borrowed returns the directory of another repository that parts of a git directory lead to, as
// git-new-workdir(1) makes them. Nothing in it says that this working tree may use it.
func borrowed(h *host.Host, r repository, access policy.Access) unproved {
	objects, err := h.RealDir(path.Join(r.common, "objects"))
	if err != nil || objects == r.objects || host.Within(objects, r.common) || host.Within(objects, r.tree) {
		return unproved{}
	}
	other := repository{tree: r.tree, gitDir: objects}
	config := h.Way(path.Join(r.common, "config"))
	if config.Presence == host.Present && path.Dir(config.Path) == path.Dir(objects) {
		other.gitDir = path.Dir(objects)
	}
	other.common = other.gitDir
	usable := h.IsGitDir(other.gitDir) == host.Present
	if other.gitDir == objects {
		usable = h.Look(objects+"/pack").IsDir() && h.Look(objects+"/info").IsDir()
	}
	if !usable { // git would use nothing else
		return unproved{}
	}
	return unproved{from: path.Join(r.common, "objects"), dir: other.gitDir, owner: ownerOf(h, other), access: access}
}

// UnprovedGit is a git directory to which .git of the working tree leads, but which is closed, since
// nothing in it says that it belongs to the tree: a hostile project may have such a .git.
type UnprovedGit struct {
	Dir    string        // canonical; "" for none
	Access policy.Access // what git needs there
	Owner  string        // what the directory says that it belongs to, or ""
	Text   string        // one line
}

// UnprovedGit returns the git directory to which .git of the working directory leads, if it is
// closed because nothing in it proves that it belongs to the working tree.
func (r *Resolved) UnprovedGit() UnprovedGit {
	a := &r.unproved
	if a.dir == "" || r.Allowed(a.dir, a.access&^policy.Exec).Allowed {
		return UnprovedGit{}
	}
	short := func(p string) string { return shell.QuotePath(r.Short(p)) }
	out := UnprovedGit{Dir: a.dir, Access: a.access, Owner: a.owner}
	out.Text = fmt.Sprintf("%s leads to %s, ", short(a.from), short(a.dir))
	if a.owner != "" {
		out.Text += fmt.Sprintf("which belongs to %s: it stays closed, so git fails here; "+
			"git worktree add makes another working tree", short(a.owner))
	} else {
		out.Text += errUnproved.Error() + ": it stays closed, so git fails here"
	}
	return out
}
