package protect

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/policy"
)

// plain reports whether the git directory of a working tree is as git-init(1),
// git-clone(1) and programs that call them make it: no hook but samples, nobody else's
// configuration, in its own none but settings that name no program, and no other
// repository in its index, which git status would look into. git does with it what it
// does anywhere, so there is nothing to tell.
func plain(host *policy.Host, dir, tree string, left *int) bool {
	for _, name := range []string{"commondir", "config.worktree", "modules", "worktrees", "rebase-merge", "sequencer", "remotes", "lazygit.yml"} {
		if _, err := host.Lstat(path.Join(dir, name)); err == nil {
			return false
		}
	}
	if urls, _ := policy.ReadSome(host, path.Join(dir, "branches"), 1); len(urls) > 0 {
		return false
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
	for _, p := range indexed(path.Join(dir, "index"), left) {
		if _, err := host.Lstat(path.Join(tree, p, ".git")); err == nil {
			return false
		}
	}
	if *left <= 0 {
		return false // nobody has looked
	}
	st, err := host.Lstat(path.Join(dir, "config"))
	if err != nil || !st.Mode.IsRegular() || len(hooks) == maxWatchedEntries {
		return false
	}
	config, err := host.ReadFile(path.Join(dir, "config"))
	return err == nil && plainConfig(string(config))
}

// plainConfig reports whether git understands all of a configuration, and none of its
// settings has it run anything.
func plainConfig(text string) bool {
	harmless := map[string][]string{
		"core":   {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"},
		"remote": {"url", "fetch"}, "branch": {"remote", "merge"}, "user": {"name", "email"},
		"extensions": {"objectformat", "refstorage"}, "init": {"defaultbranch"},
	}
	settings, bad := gitconfig.Read(text)
	return bad == 0 && !slices.ContainsFunc(settings, func(s gitconfig.Setting) bool {
		transport := s.Key == "url" && strings.Contains(s.Value, "::") // which runs a program
		return transport || !slices.Contains(harmless[s.Section], s.Key)
	})
}
