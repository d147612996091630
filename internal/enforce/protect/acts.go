package protect

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/zsbx/zsbx/internal/object"
)

// This file judges paths that a command made, by their names alone and at any depth: a directory that
// is new today is one where somebody works tomorrow.

// Sentences of Acts for what is not in projectGroups.
const (
	reportedActs = "programs outside take settings or other programs from it"
	hooksAct     = "git runs it"
	gitActs      = "git takes programs or settings from it"
	dotGitActs   = "git finds a repository through it"
	headActs     = "git may take this directory for a repository"
)

// Acts reports whether a path below a tree is one that programs outside run or trust without being
// asked to, and why, for people. It knows the names of projectGroups and reportedNames, with what is
// below them, and what is protected in git directories. A directory counts as a git directory if it is
// named .git or NAME.git; another one with a file HEAD may be a bare repository.
//
// The path has no leading slash. It may be any bytes. Upper and lower case are the same.
func Acts(rel string) (why string, is bool) {
	parts := foldedParts(rel)
	for i := range parts {
		if why := table().acts(parts[i:]); why != "" {
			return why, true
		}
	}
	why = gitAct(parts)
	return why, why != ""
}

// Leads reports whether programs would come to such files through a path, if it is a symbolic link: it
// has the name of a directory that holds some of them, or is in a git directory.
func Leads(rel string) (why string, is bool) {
	parts := foldedParts(rel)
	for i := range parts {
		if why := table().dirs[strings.Join(parts[i:], "/")]; why != "" {
			return why, true
		}
	}
	if slices.ContainsFunc(parts, isGitDir) {
		return gitActs, true
	}
	return "", false
}

// InBare is Acts for a path in a bare repository of any name. has reports whether a directory has a file
// HEAD.
func InBare(rel string, has func(dir string) bool) (why string, is bool) {
	parts := foldedParts(rel)
	at := 0 // where the directory's path ends
	for i := range parts {
		why := gitDirAct(parts[i:])
		if why != "" && has(strings.TrimSuffix(rel[:at], "/")) {
			return why, true
		}
		at += strings.IndexByte(rel[at:]+"/", '/') + 1
	}
	return "", false
}

// Acts reports whether programs outside run or trust a path that is only compared, with what is below it.
// A git directory is left out: most of what is in it does nothing.
func (c *Compared) Acts() bool {
	switch c.Kind {
	case Any, Missing, ByGit, Content:
		return path.Base(c.Path) != ".git"
	}
	return false
}

// foldedParts splits a path into its names, in lower case.
func foldedParts(rel string) []string {
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		parts[i] = fold(part)
	}
	return parts
}

// fold writes a name as file systems compare it that ignore case: a letter beyond ASCII may stand for one
// in it, and characters without width are left out (ext4's casefold).
func fold(name string) string {
	plain := true
	for i := range len(name) {
		plain = plain && name[i] <= unicode.MaxASCII
	}
	if !plain {
		name = strings.Map(func(r rune) rune {
			if object.Hidden(r) || r == '\uFE0E' || r == '\uFE0F' {
				return -1
			}
			return unicode.ToUpper(r)
		}, name)
	}
	return strings.ToLower(name)
}

// actsName is a name that programs outside act on, with all below it, in lower case. Its last part may have
// a pattern.
type actsName struct {
	parts []string
	why   string
}

// begins reports whether a path is this name or below it.
func (n *actsName) begins(parts []string) bool {
	last := len(n.parts) - 1
	if len(parts) <= last || !slices.Equal(parts[:last], n.parts[:last]) {
		return false
	}
	before, after, pattern := strings.Cut(n.parts[last], "*")
	if !pattern {
		return parts[last] == before
	}
	return matches(parts[last], before, after)
}

// firstOf returns the reason of the first of some names that is a path or above it, or "".
func firstOf(names []actsName, parts []string) string {
	for i := range names {
		if names[i].begins(parts) {
			return names[i].why
		}
	}
	return ""
}

// actsTable has the names of projectGroups and reportedNames, and those in git directories.
type actsTable struct {
	first map[string][]actsName // by the first part, for those in which it has no pattern
	loose []actsName            // the others, which have only one part
	dirs  map[string]string     // the directories above those of several parts
	git   []actsName            // in a git directory
}

var table = sync.OnceValue(func() *actsTable {
	t := &actsTable{first: make(map[string][]actsName), dirs: make(map[string]string)}
	for _, g := range projectGroups {
		t.add(g.names, g.acts)
	}
	t.add(reportedNames, reportedActs)
	for _, n := range gitActing {
		why := gitActs
		if n == "hooks" {
			why = hooksAct
		}
		t.git = append(t.git, actsName{foldedParts(n), why})
	}
	return t
})

// gitActing are all names in a git directory that count. A filter of the user's own settings runs for
// the files that info/attributes names.
var gitActing = slices.Concat(
	[]string{"config", "config.worktree", "gitdir", "info/attributes"}, gitNames, gitWrites, worktreeWrites,
)

func (t *actsTable) add(names []string, why string) {
	for _, n := range names {
		name := actsName{foldedParts(n), why}
		first := name.parts[0]
		if strings.Contains(first, "*") {
			t.loose = append(t.loose, name)
			continue
		}
		t.first[first] = append(t.first[first], name)
		for i := 1; i < len(name.parts); i++ {
			t.dirs[strings.Join(name.parts[:i], "/")] = why
		}
	}
}

// acts returns why programs outside act on a path that is or begins with one of the table's names, or "".
func (t *actsTable) acts(parts []string) string {
	return cmp.Or(firstOf(t.first[parts[0]], parts), firstOf(t.loose, parts))
}

// IsGitDir reports whether a directory of this name is taken for a git directory, in upper or lower case.
func IsGitDir(name string) bool { return isGitDir(fold(name)) }

// isGitDir is IsGitDir for a name in lower case.
func isGitDir(name string) bool { return strings.HasSuffix(name, ".git") }

// gitAct returns why git runs or trusts a path, or "".
func gitAct(parts []string) string {
	last := len(parts) - 1
	inGit := false
	for i, name := range parts {
		if !isGitDir(name) {
			continue
		}
		if i == last && name == ".git" {
			return dotGitActs
		}
		inGit = true
		if why := gitDirAct(parts[i+1:]); why != "" {
			return why
		}
	}
	if parts[last] == "head" && !inGit {
		return headActs
	}
	return ""
}

// gitDirAct is gitAct for what is in a git directory. The name of a submodule may have slashes, so
// any directory below modules may be one.
func gitDirAct(parts []string) string {
	if why := firstOf(table().git, parts); why != "" {
		return why
	}
	if len(parts) > 2 && parts[0] == "worktrees" {
		return gitDirAct(parts[2:])
	}
	for i := 2; i < len(parts) && parts[0] == "modules"; i++ {
		if why := gitDirAct(parts[i:]); why != "" {
			return why
		}
	}
	return ""
}
