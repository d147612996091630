package protect

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
)

// Git runs programs that settings name, some of them in the working tree. This file finds these
// programs by the settings of the repository and of the user, with what the settings include.

// maxIncludes is how deep git follows includes.
const maxIncludes = 10

// programKeys are the settings, by section, with which git runs something that the user did not
// ask for by its name: at a commit, a push, a status. "*" stands for all settings of a section.
// Aliases and the tools of git mergetool are left out, since the user types their names.
var programKeys = map[string][]string{
	"core":        {"fsmonitor", "sshcommand", "gitproxy", "askpass", "editor", "pager", "alternaterefscommand"},
	"filter":      {"clean", "smudge", "process"},
	"diff":        {"external", "command", "textconv"},
	"merge":       {"driver"},
	"gpg":         {"program", "defaultkeycommand"},
	"credential":  {"helper"},
	"pager":       {"*"},
	"interactive": {"difffilter"},
	"sequence":    {"editor"},
	"trailer":     {"command", "cmd"},
	"uploadpack":  {"packobjectshook"},
	"remote":      {"uploadpack", "receivepack"},
	"submodule":   {"update"},
	"hook":        {"command"},
	"gc":          {"recentobjectshook"},
}

// namesProgram reports whether git runs the value of a setting.
func namesProgram(s gitconfig.Setting) bool {
	keys := programKeys[s.Section]
	return slices.Contains(keys, s.Key) || slices.Contains(keys, "*")
}

// namesHooks reports whether the value of a setting is the directory of hooks.
func namesHooks(s gitconfig.Setting) bool {
	return s.Section == "core" && s.Sub == "" && s.Key == "hookspath"
}

// Named returns what may be paths that git runs because of a setting, as they are written: relative ones begin at the
// top of the working tree. hooks says that these are directories of hooks. Git copies what is in init.templateDir into
// new repositories.
func Named(s gitconfig.Setting) (paths []string, hooks bool) {
	if s.Section == "init" && s.Key == "templatedir" {
		return s.Values(), false
	}
	hooks = namesHooks(s)
	for _, value := range s.Values() {
		switch {
		case hooks && path.Base(value) == "_" && path.Base(path.Dir(value)) == husky: // which runs those beside it
			paths = append(paths, path.Dir(value))
		case hooks:
			paths = append(paths, value)
		case namesProgram(s):
			paths = append(paths, programs(value)...)
		}
	}
	return paths, hooks
}

// programs returns what may be paths in a command line. A first word without a slash is looked up on PATH. What a
// variable or a command in it stands for is also taken for the top of the working tree.
func programs(line string) (paths []string) {
	for i, word := range words(line) {
		before, rest, slash := strings.Cut(word, "/")
		if i > 0 || slash {
			paths = append(paths, word)
		}
		if rest != "" && (before == "" || strings.Contains(line, "$"+word)) {
			paths = append(paths, rest)
		}
	}
	return paths
}

// configured protects what settings name in the writable trees: the directory of hooks, and files that
// are programs or their arguments. dir is the git directory of a working tree, or both are a bare
// repository.
func (c *protector) configured(dir, common, tree string) {
	settings := slices.Concat(
		c.userSettings(),
		c.settings(path.Join(common, "config"), maxIncludes),
		c.settings(path.Join(dir, "config.worktree"), maxIncludes),
	)
	tops := []string{tree}
	for _, s := range settings {
		if s.Section == "core" && s.Sub == "" && s.Key == "worktree" {
			if to := c.host.Way(c.written(s.Value, dir)); !slices.Contains(tops, to.Path) {
				tops = append(tops, to.Path)
			}
		}
	}
	for _, s := range settings {
		for _, value := range s.Values() {
			for _, top := range tops {
				switch {
				case namesHooks(s):
					c.hooks(value, top)
				case namesProgram(s):
					c.program(value, top)
				}
			}
		}
	}
}

// UserSettings returns the settings of git that the user has for all repositories.
func UserSettings(h *host.Host) []gitconfig.Setting {
	c := &protector{host: h, home: h.Home, seen: make(map[string]bool), left: maxProtected}
	return c.userSettings()
}

// userSettings returns the settings that the user has for all repositories.
func (c *protector) userSettings() []gitconfig.Setting {
	if c.global != nil {
		return c.global
	}
	c.global = []gitconfig.Setting{}
	names := []string{"/etc/gitconfig"}
	if name := c.host.Getenv("GIT_CONFIG_GLOBAL"); name != "" {
		names = append(names, name)
	} else if c.home != "" {
		names = append(names, c.host.ConfigHome()+"/git/config", c.home+"/.gitconfig")
	}
	for _, name := range names {
		if !path.IsAbs(name) {
			continue // it depends on where git starts
		}
		c.includes(name)
		c.global = append(c.global, c.settings(name, maxIncludes)...)
	}
	return c.global
}

// settings returns the settings of a configuration and of those that it includes. What can't be
// read is left out: includes says so, if it matters.
func (c *protector) settings(config string, depth int) (all []gitconfig.Setting) {
	if depth < 0 {
		return nil
	}
	for _, s := range c.parsed(config).settings {
		all = append(all, s)
		if !s.Includes() {
			continue
		}
		for _, value := range s.Values() {
			if name := c.written(value, path.Dir(config)); name != "" && len(all) < maxProtected {
				all = append(all, c.settings(name, depth-1)...)
			}
		}
	}
	return all
}

// written is Written for the user's home directory.
func (c *protector) written(value, dir string) string { return Written(value, dir, c.home) }

// Written returns the path that a value means, from a directory or the home directory. It does not resolve "..". For
// another user's home and for git's installation it returns "".
func Written(value, dir, home string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok && home != "" {
		return home + "/" + rest
	}
	switch {
	case value == "", value[0] == '~', strings.HasPrefix(value, "%(prefix)/"):
		return ""
	case path.IsAbs(value):
		return value
	}
	return dir + "/" + value
}

// hooks protects the directory that core.hooksPath names. If the working tree is in that
// directory, only the hooks in it are protected. husky, which npm install starts, writes .husky
// anew, so .husky is only compared.
func (c *protector) hooks(value, top string) {
	if strings.HasPrefix(value, "~") && !strings.HasPrefix(value, "~/") {
		why := fmt.Sprintf("core.hooksPath is %q in another user's home, which was not looked up", value)
		c.unparsed(path.Join(top, ".git/config"), why)
		return
	}
	dir := c.found(c.written(value, top))
	if dir == "" {
		return
	}
	to := c.host.Way(dir)
	real := to.Path
	if !c.writable(real) {
		c.compareLinks(to.Links)
		return
	}
	parent := path.Dir(real)
	if path.Base(real) == husky {
		c.compareContent(real, real+"/_")
		return
	}
	if path.Base(real) == "_" && path.Base(parent) == husky {
		c.compareContent(parent, real)
		return
	}
	hasTree := func(tree string) bool { return host.Within(tree, real) }
	if hasTree(top) || slices.ContainsFunc(c.trees, hasTree) {
		for _, name := range HookNames {
			c.add(path.Join(real, name), "")
		}
		return
	}
	c.add(dir, c.within(dir))
}

// husky is the directory that the program of this name writes.
const husky = ".husky"

// HookNames are those of githooks(5).
var HookNames = []string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit",
	"prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge",
	"pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update",
	"reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate",
	"fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit",
	"post-index-change",
}

// program protects the files of a working tree that a command line names. A first word without a
// slash is looked up on PATH. What a variable or a command in it stands for is taken for the tree's
// top, as in "$(git rev-parse --show-toplevel)/tools/x".
func (c *protector) program(line, top string) {
	for i, word := range words(line) {
		_, rest, slash := strings.Cut(word, "/")
		if i > 0 || slash {
			c.argument(c.found(c.written(word, top)), slash)
		}
		if slash && rest != "" {
			c.argument(c.found(top+"/"+rest), false)
		}
	}
}

// argument protects a file if it is in a writable tree; with missing also one that is not there yet.
// What package managers install is only compared, since they replace it, and so is where a link
// leads: a virtual environment is made of links, and made anew.
func (c *protector) argument(p string, missing bool) {
	if p == "" || !c.writable(p) {
		return
	}
	at := c.host.Look(p)
	to := c.host.Way(p)
	if at.IsLink() {
		c.compareContent(p)
	}
	switch {
	case to.IsDir(), !missing && to.Presence == host.Absent:
	case strings.Contains(to.Path, "/node_modules/"):
		c.compareContent(p)
	case c.writable(to.Path):
		c.add(to.Path, c.within(to.Path))
	}
}

// words returns what may be names of files in a command line: its words, and what is in quotes.
func words(line string) []string {
	quote := func(r rune) bool { return r == '"' || r == '\'' }
	all := strings.FieldsFunc(line, func(r rune) bool {
		return quote(r) || strings.ContainsRune(" \t\r\n;|&<>()$`{}=!", r)
	})
	for _, part := range strings.FieldsFunc(line, quote) {
		part = strings.TrimSpace(part)
		if strings.Contains(part, " ") && strings.Contains(part, "/") {
			all = append(all, part)
		}
	}
	return all
}

// found follows the links in a path's directory, and compares them. It returns "" if there can't be
// such a file. The last part may be a link.
func (c *protector) found(name string) string {
	i := strings.LastIndexByte(strings.TrimRight(name, "/"), '/')
	if name == "" || i < 0 {
		return ""
	}
	base := strings.Trim(name[i:], "/")
	if base == "." || base == ".." {
		i = len(name)
		base = ""
	}
	dir := c.host.Way(name[:i] + "/")
	c.compareWay(dir.Links, dir.Err)
	if dir.Presence == host.Unknown {
		c.unknown(dir.Path, dir.Err)
		return ""
	}
	return path.Join(dir.Path, base)
}

// compareContent compares files and directories that are written anew with the same content.
func (c *protector) compareContent(paths ...string) {
	for _, p := range paths {
		if !c.writable(p) {
			continue
		}
		c.compare(Compared{Path: p, Kind: Content})
		_, err := c.host.Entries(p, 1)
		if err != nil && !host.Missing(err) {
			c.unknown(p, err)
		}
	}
}
