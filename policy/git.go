package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
)

// A repository is where git keeps what belongs to a working tree.
type repository struct {
	tree   string // the working tree's top
	gitDir string // tree/.git, or the directory that the file tree/.git names
	common string // the directory that a linked worktree shares; otherwise gitDir
}

var errNoRepository = errors.New("no git repository")

// git adds the repository of the working directory if the git preset is in use.
func (rs *resolver) git(presets []Named) {
	if !slices.ContainsFunc(presets, func(n Named) bool { return n.Value == "git" }) {
		return
	}
	rules, skipped := rs.host.gitRules(rs.userAccess)
	for _, rule := range rules {
		rs.rule(rule)
	}
	rs.r.Skipped = append(rs.r.Skipped, skipped...)
}

// gitRules returns the rules that the git preset needs for the repository of the working
// directory: for its git directory, its common directory and the file that names them, if
// they are outside the working tree or above the working directory. They get the access
// that the working tree has: allowed returns what the user's rules allow on a canonical
// path. If only the working directory is writable and not the tree's top, the repository
// is only readable.
//
// A file named .git is part of the project, which may be hostile. The directory that it
// names is used only if that proves that it belongs to this working tree, as described in
// gitrepository-layout(5); otherwise it is skipped. Alternate object stores are never
// followed, because the file that names them proves nothing.
func (h *Host) gitRules(allowed func(p string) Access) (rules []Rule, skipped []Skip) {
	rule := Rule{Optional: true, Origin: Origin{Source: "preset git"}}
	r, err := h.findRepository(path.Clean(h.Dir))
	switch {
	case errors.Is(err, errNoRepository):
		return nil, nil
	case err != nil:
		rule.Path, rule.Access = r.gitDir, Read
		return nil, []Skip{{Rule: rule, Reason: err.Error()}}
	}
	rule.Access = Read | allowed(r.tree)
	for _, rule.Path = range []string{r.common, r.gitDir, path.Join(r.tree, ".git")} {
		opens := func(had Rule) bool { return Within(rule.Path, had.Path) }
		if rule.Access&^allowed(rule.Path) != 0 && !slices.ContainsFunc(rules, opens) {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// findRepository looks for .git in dir and above. If it returns another error than
// errNoRepository, gitDir is what the refused .git names.
func (h *Host) findRepository(dir string) (repository, error) {
	for {
		dot := path.Join(dir, ".git")
		switch at := h.Look(dot); {
		case at.IsDir():
			return repository{tree: dir, gitDir: dot, common: dot}, nil
		case at.Presence == Present:
			return h.linkedRepository(dir, dot)
		case at.Presence == Unknown:
			return repository{tree: dir, gitDir: dot}, fmt.Errorf("%s: %w", dot, at.Err)
		case dir == "/":
			return repository{}, errNoRepository
		}
		dir = path.Dir(dir)
	}
}

// linkedRepository follows the file tree/.git of a linked worktree or of a submodule, and
// checks that the directory belongs to the tree.
func (h *Host) linkedRepository(tree, dot string) (repository, error) {
	r := repository{tree: tree, gitDir: dot}
	named, err := h.gitPointer(dot, "gitdir: ")
	if err != nil {
		return r, err
	}
	r.gitDir = named
	if r.gitDir, err = h.realDir(named); err != nil {
		return r, fmt.Errorf("%s names %s: %w", dot, named, err)
	}
	r.common = r.gitDir
	belongs := h.isSubmodule
	if worktrees := path.Dir(r.gitDir); path.Base(worktrees) == "worktrees" {
		r.common, belongs = path.Dir(worktrees), h.isWorktree
	}
	if !belongs(r) || h.IsGitDir(r.common) != Present {
		err = fmt.Errorf("%s names %s, which does not say that it belongs to this working tree", dot, r.gitDir)
	}
	return r, err
}

// isWorktree requires that the directory of a linked worktree is in the repository's
// "worktrees", and names exactly this .git file.
func (h *Host) isWorktree(r repository) bool {
	back, err := h.gitPointer(path.Join(r.gitDir, "gitdir"), "")
	if err != nil {
		return false
	}
	back, _, err = h.RealPath(back)
	common, _, bad := h.GitDir(path.Join(r.gitDir, "commondir"), "")
	return err == nil && bad == nil && back == path.Join(r.tree, ".git") && common == r.common
}

// isSubmodule requires that a submodule's directory is in "modules" of the repository
// around it, and names exactly this working tree (core.worktree).
func (h *Host) isSubmodule(r repository) bool {
	outer, err := h.findRepository(path.Dir(r.tree))
	if err != nil || !Within(r.gitDir, path.Join(outer.gitDir, "modules")) {
		return false
	}
	config, err := h.readRegular(path.Join(r.gitDir, "config"))
	back := ""
	settings, _ := gitconfig.Read(config)
	for _, s := range settings {
		if s.Section == "core" && s.Sub == "" && s.Key == "worktree" {
			back = s.Value
		}
	}
	if !path.IsAbs(back) {
		back = path.Join(r.gitDir, back)
	}
	back, bad := h.realDir(back)
	return err == nil && bad == nil && back == r.tree
}

// IsGitDir reports whether a directory has what every git directory has.
func (h *Host) IsGitDir(dir string) Presence {
	is := Present
	for _, name := range []string{"objects", "refs", "HEAD"} {
		at := h.Look(path.Join(dir, name))
		switch {
		case at.Presence == Unknown:
			is = Unknown
		case at.Presence == Absent, at.IsDir() == (name == "HEAD"):
			return Absent
		}
	}
	return is
}

// GitDir returns the canonical directory that a file of one line names after prefix: .git
// of a linked worktree or a submodule, or commondir. links are those that lead there. With
// some errors it is unknown what the file names (Unsure).
func (h *Host) GitDir(file, prefix string) (dir string, links []string, _ error) {
	named, err := h.gitPointer(file, prefix)
	if err != nil {
		return "", nil, err
	}
	dir, links, st, err := h.Trail(named)
	return dir, links, isDir(named, st, err)
}

// gitPointer reads a file of one line that names a path after prefix. A relative path
// starts at the file's directory. A ".." in it stays, for the file system to follow.
func (h *Host) gitPointer(file, prefix string) (string, error) {
	data, err := h.readRegular(file)
	if err != nil {
		return "", err
	}
	named, ok := strings.CutPrefix(strings.TrimRight(data, "\r\n"), prefix)
	if !ok || named == "" {
		return "", otherError(file + " does not name one path")
	}
	if !path.IsAbs(named) {
		named = path.Dir(file) + "/" + named
	}
	return named, nil
}

// readRegular reads a regular file: a project may have a FIFO where git has a file, and
// reading that would block forever.
func (h *Host) readRegular(file string) (string, error) {
	at := h.Look(file)
	err := at.Err
	if at.Presence == Present && !at.IsRegular() {
		err = otherError("not a regular file")
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	data, err := h.ReadFile(file)
	return string(data), err
}

// realDir is RealPath for a path that must be a directory.
func (h *Host) realDir(p string) (string, error) {
	real, st, err := h.RealPath(p)
	return real, isDir(p, st, err)
}

// isDir returns err, or an error if p is not a directory.
func isDir(p string, st Stat, err error) error {
	if err == nil && !st.Mode.IsDir() {
		err = &fs.PathError{Op: "open", Path: p, Err: otherError("not a directory")}
	}
	return err
}
