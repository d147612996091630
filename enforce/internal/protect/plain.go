package protect

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// plain reports whether a git directory is as git-init(1), git-clone(1) and programs
// that call them make it: no hook but samples, nobody else's configuration, and in
// its own none but settings that name no program. git does with it what it does
// anywhere, so there is nothing to tell.
func plain(host *policy.Host, dir string) bool {
	for _, name := range []string{"commondir", "config.worktree", "modules", "worktrees", "rebase-merge"} {
		if _, err := host.Lstat(path.Join(dir, name)); err == nil {
			return false
		}
	}
	for _, name := range []string{"", "hooks"} {
		if st, err := host.Lstat(path.Join(dir, name)); err == nil && !st.Mode.IsDir() {
			return false
		}
	}
	hooks, _ := policy.ReadSome(host, path.Join(dir, "hooks"), maxWatchedEntries)
	for _, h := range hooks {
		if !strings.HasSuffix(h.Name(), ".sample") {
			return false
		}
	}
	st, err := host.Lstat(path.Join(dir, "config"))
	if err != nil || !st.Mode.IsRegular() || len(hooks) == maxWatchedEntries {
		return false
	}
	config, err := host.ReadFile(path.Join(dir, "config"))
	return err == nil && plainConfig(string(config))
}

// plainConfig reports whether all lines of a git configuration (git-config(1),
// Syntax) are sections, and settings that have git run nothing.
func plainConfig(text string) bool {
	settings := map[string][]string{
		"core":   {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"},
		"remote": {"url", "fetch"}, "branch": {"remote", "merge"}, "user": {"name", "email"},
		"extensions": {"objectformat", "refstorage"}, "init": {"defaultbranch"},
	}
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if inner, ok := strings.CutPrefix(line, "["); ok {
			inner, ok = strings.CutSuffix(inner, "]")
			section, _, _ = strings.Cut(strings.ToLower(inner), " ")
			if !ok || settings[section] == nil || strings.Contains(inner, "]") {
				return false
			}
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case !slices.Contains(settings[section], name),
			strings.HasSuffix(line, `\`),                        // the next line belongs to it
			name == "url" && strings.ContainsAny(value, "\"\\"), // quoted, it may be anything
			name == "url" && strings.Contains(value, "::"):      // a transport that runs a program
			return false
		}
	}
	return true
}
