package review

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
)

// maxSettings is how many bytes of git's settings are read. A command can write many: each file counts as costsFile
// more, each path that a setting names as costsPath, and each look at a name on the way there as costsLook.
const (
	maxSettings = 64 << 20
	costsFile   = 256
	costsPath   = 4096
	costsLook   = 16
)

// long is what a path or the value of a setting costs beside what is looked at because of it.
func long(s string) int { return len(s) * len(s) / 64 }

// spend reports whether so much may still be read. If not, more settings may name what is in any tree.
func (r *Review) spend(cost int) bool {
	r.left -= cost
	if r.left < 0 {
		r.unknown = true
	}
	return r.left >= 0
}

// reposIn returns the git directories that a path is, or is in, by their names.
func reposIn(rel string) (all []string) {
	end := 0
	for name := range strings.SplitSeq(rel, "/") {
		end += len(name)
		if protect.IsGitDir(name) {
			all = append(all, rel[:end])
		}
		end++
	}
	return all
}

// learnSettings finds what git runs because of the settings of a repository, as they are and as they would be. The
// path is that of a .git, or of a bare repository.
func (r *Review) learnSettings(repo key) {
	top := r.full(repo)
	if strings.EqualFold(path.Base(top), ".git") {
		top = path.Dir(top)
	}
	tops := []string{top}
	settings := slices.Clone(r.user)
	for _, dir := range r.gitDirs(repo) {
		seen := make(map[string]bool)
		some := append(r.settings(dir+"/config", seen), r.settings(dir+"/config.worktree", seen)...)
		for _, s := range some {
			if s.Section == "core" && s.Key == "worktree" {
				tops = append(tops, r.targets(protect.Written(s.Value, dir, r.host.Home))...)
			}
		}
		settings = append(settings, some...)
	}
	for _, s := range settings {
		paths, hooks := protect.Named(s)
		for _, name := range paths {
			for _, top := range tops {
				if !r.spend(costsPath) {
					return
				}
				r.protect(top, name, hooks)
			}
		}
	}
}

// learnUser finds what git runs because of the user's settings, wherever a repository is.
func (r *Review) learnUser() {
	for _, s := range r.user {
		paths, hooks := protect.Named(s)
		if s.Includes() {
			paths = s.Values()
		}
		for _, name := range paths {
			if path.IsAbs(name) || strings.HasPrefix(name, "~/") {
				r.protect(r.trees[0], name, hooks)
			}
		}
	}
}

// gitDirs returns where the settings of a repository are. A .git that is a file names the git directory, as that of
// a submodule; one of a linked working tree names the one that all share.
func (r *Review) gitDirs(repo key) []string {
	dot := r.full(repo)
	dirs := r.targets(dot)
	for _, file := range dirs {
		for _, text := range r.read(file) {
			if to, is := strings.CutPrefix(text, "gitdir: "); is {
				dirs = append(dirs, r.targets(from(path.Dir(dot), strings.TrimRight(to, "\r\n")))...)
			}
		}
	}
	for _, dir := range dirs {
		for _, file := range r.targets(dir + "/commondir") {
			for _, text := range r.read(file) {
				dirs = append(dirs, r.targets(from(dir, strings.TrimRight(text, "\r\n")))...)
			}
		}
	}
	return dirs
}

// from returns a path that is written in a directory. It does not resolve "..".
func from(dir, p string) string {
	if path.IsAbs(p) {
		return p
	}
	return dir + "/" + p
}

// targets returns where a path leads with the trees as they are and as they would be. Programs outside trust each link
// on the way.
func (r *Review) targets(p string) []string {
	if p == "" {
		return nil
	}
	return r.ends(p, trusted)
}

// settings returns those of a file, and of the files that it includes.
func (r *Review) settings(file string, seen map[string]bool) (all []gitconfig.Setting) {
	for _, at := range r.targets(file) {
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, text := range r.read(at) {
			some, _ := gitconfig.Read(text)
			for _, s := range some {
				if !r.spend(long(s.Value)) { // each word will be looked for in all of it
					return all
				}
				all = append(all, s)
				if s.Includes() {
					dir := file[:strings.LastIndexByte(file, '/')]
					r.protect(dir, s.Value, false)
					all = append(all, r.settings(protect.Written(s.Value, dir, r.host.Home), seen)...)
				}
			}
		}
	}
	return all
}

// read returns what a file has in the tree and in the layer, or outside: the repository of a linked working tree may be
// there, and files that settings include.
func (r *Review) read(file string) (texts []string) {
	at, in := r.place(file)
	if !in && r.spend(costsFile) && r.host.Look(file).IsRegular() {
		text, err := r.host.ReadFile(file)
		if err == nil && r.spend(len(text)) {
			texts = append(texts, string(text))
		}
	}
	for _, old := range []bool{true, false} {
		if !in || !r.spend(costsFile) {
			return texts
		}
		text, err := r.files.Text(at.tree, at.path, old)
		if len(text) > maxText {
			r.unknown = true
		} else if err == nil && r.spend(len(text)) {
			texts = append(texts, string(text))
		}
	}
	return texts
}

// protect notes that programs outside run or trust what a path leads to from the top of a working tree. Of a directory
// of hooks with that in it, these are the hooks alone; another such directory is an argument like ".".
func (r *Review) protect(top, name string, hooks bool) {
	for _, dir := range r.targets(protect.Written(name, top, r.host.Home)) {
		hasTree := func(tree string) bool { return host.Within(tree, dir) }
		switch {
		case !hasTree(top) && !slices.ContainsFunc(r.trees, hasTree):
			r.protected[dir] = true
		case hooks:
			for _, hook := range protect.HookNames {
				r.protected[path.Join(dir, hook)] = true
			}
		}
	}
}
