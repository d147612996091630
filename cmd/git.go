package cmd

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
)

// tellGit says that git can't change its configuration, or the repository, if git was to do that:
// git itself says "Device or resource busy", or names a lock.
func (a *app) tellGit(plan *enforce.Plan, argv []string) {
	r := plan.Policy
	file := changedByGit(r, argv)
	if file == "" {
		file = changedByGit(r, shellWords(argv))
	}
	if file == "" {
		return
	}
	real, st, exists := r.Look(file)
	act := enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActWrite, Path: real, Mode: st.Mode.Type(), Missing: !exists}
	if !exists {
		act.Flags |= enforce.ActCreat
	}
	d := plan.Decide(act)
	if d.Verdict != enforce.Refused {
		return
	}
	a.say.warn("git can't change %s: %s", shell.QuotePath(r.Short(real)), d.Reason)
	hint := plan.Hint(act, &d)
	if _, why := learn.Ask(r, d.Needs...); hint.Flags == "" && why != "" {
		a.say.warn("no rule is proposed: %s", why)
	}
	a.offer(r, hint)
}

// changedByGit returns the file that git has to write first for the command that words tell it, or "".
func changedByGit(r *resolve.Resolved, words []string) string {
	for i, word := range words {
		if path.Base(word) != "git" {
			continue
		}
		call := readGit(r, words[i+1:])
		name := ""
		switch {
		case call.setsConfig():
			name = "config"
		case call.commits():
			name = "index.lock"
		}
		dir := call.repository(r.Host())
		if name == "" || dir == "" {
			continue
		}
		common, _, err := r.Host().GitDir(path.Join(dir, "commondir"), "")
		if err == nil && name == "config" {
			dir = common
		}
		return path.Join(dir, name)
	}
	return ""
}

// gitCall is a command line of git.
type gitCall struct {
	dir    string   // where git runs
	gitDir string   // as --git-dir names it, or ""
	args   []string // the command, and what follows it that is no flag
}

// readGit reads what follows the word git: flags of git itself, a command, its arguments.
func readGit(r *resolve.Resolved, words []string) (call gitCall) {
	call.dir = r.Dir
	valued := []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"}
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		name, value, joined := strings.Cut(words[0], "=")
		words = words[1:]
		if !joined && slices.Contains(valued, name) && len(words) > 0 {
			value = words[0]
			words = words[1:]
		}
		switch name {
		case "-C":
			call.dir = beside(call.dir, value)
		case "--git-dir":
			call.gitDir = value
		}
	}
	flag := func(arg string) bool { return strings.HasPrefix(arg, "-") }
	call.args = slices.DeleteFunc(slices.Clone(words), flag)
	call.args = append(call.args, "", "", "")
	return call
}

// beside returns a path that may be relative to dir.
func beside(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// repository returns the git directory of the call, or "".
func (c *gitCall) repository(h *host.Host) string {
	if c.gitDir != "" {
		return beside(c.dir, c.gitDir)
	}
	top := h.Repository(c.dir)
	dot := path.Join(top, ".git")
	switch {
	case top == "" && h.IsGitDir(c.dir) == host.Present: // bare
		return c.dir
	case top == "":
		return ""
	}
	if dir, _, err := h.GitDir(dot, "gitdir: "); err == nil {
		return dir
	}
	return dot
}

// setsConfig reports whether the command writes the repository's configuration.
func (c *gitCall) setsConfig() bool {
	switch args := c.args; args[0] {
	case "init":
		return true
	case "remote":
		return slices.Contains([]string{"add", "remove", "rm", "rename", "set-url"}, args[1])
	case "submodule":
		return slices.Contains([]string{"add", "init", "deinit", "set-url", "update"}, args[1])
	case "config": // a name alone is only read
		return args[2] != "" && args[2] != "git" && args[1] != "get"
	}
	return false
}

// commits reports whether the command begins with a lock of the index.
func (c *gitCall) commits() bool {
	return slices.Contains([]string{
		"add", "am", "cherry-pick", "checkout", "commit", "merge", "mv", "pull", "rebase", "reset", "restore",
		"revert", "rm", "stash", "switch",
	}, c.args[0])
}
