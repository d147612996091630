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
// more, and each path that a setting names as costsPath.
const (
	maxSettings = 64 << 20
	costsFile   = 256
	costsPath   = 4096
)

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
	tops := []key{repo}
	if strings.EqualFold(path.Base(repo.path), ".git") {
		tops = []key{{repo.tree, path.Dir(repo.path)}}
	}
	settings := slices.Clone(r.user)
	for _, dir := range r.gitDirs(repo) {
		seen := make(map[key]bool)
		some := append(r.settings(dir, "config", seen), r.settings(dir, "config.worktree", seen)...)
		for _, s := range some {
			if s.Section == "core" && s.Key == "worktree" {
				tops = r.withTarget(tops, dir, protect.Written(s.Value, r.full(dir), r.host.Home))
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
				r.protect(key{0, "."}, name, hooks)
			}
		}
	}
}

// gitDirs returns where the settings of a repository are. A .git that is a file names the git directory, as that of
// a submodule; one of a linked working tree names the one that all share.
func (r *Review) gitDirs(repo key) []key {
	above := key{repo.tree, path.Dir(repo.path)}
	dirs := r.withTarget(nil, above, path.Base(repo.path))
	for _, text := range r.read(repo) {
		if to, is := strings.CutPrefix(text, "gitdir: "); is {
			dirs = r.withTarget(dirs, above, strings.TrimRight(to, "\r\n"))
		}
	}
	for _, dir := range dirs {
		for _, text := range r.read(key{dir.tree, path.Join(dir.path, "commondir")}) {
			dirs = r.withTarget(dirs, dir, strings.TrimRight(text, "\r\n"))
		}
	}
	return dirs
}

// withTarget adds where a path in a directory leads, if that is in a tree.
func (r *Review) withTarget(all []key, dir key, to string) []key {
	if at, in := r.target(dir, to); in {
		all = append(all, at)
	}
	return all
}

// settings returns those of a file, and of the files that it includes.
func (r *Review) settings(dir key, name string, seen map[key]bool) (all []gitconfig.Setting) {
	at, in := r.target(dir, name)
	if name == "" || !in || seen[at] {
		return nil
	}
	seen[at] = true
	for _, text := range r.read(at) {
		some, _ := gitconfig.Read(text)
		for _, s := range some {
			all = append(all, s)
			if s.Includes() {
				dir := key{at.tree, path.Dir(at.path)}
				r.protect(dir, s.Value, false)
				all = append(all, r.settings(dir, protect.Written(s.Value, r.full(dir), r.host.Home), seen)...)
			}
		}
	}
	return all
}

// read returns what a file has in the tree and in the layer.
func (r *Review) read(at key) (texts []string) {
	for _, old := range []bool{true, false} {
		if !r.spend(costsFile) {
			return nil
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
// of hooks with that in it, these are the hooks alone.
func (r *Review) protect(top key, name string, hooks bool) {
	name = protect.Written(name, r.full(top), r.host.Home)
	to, in := r.target(top, name)
	if name == "" || !in {
		return
	}
	dir := r.full(to)
	hasTree := func(tree string) bool { return host.Within(tree, dir) }
	if hooks && (hasTree(r.full(top)) || slices.ContainsFunc(r.trees, hasTree)) {
		for _, hook := range protect.HookNames {
			r.protected[path.Join(dir, hook)] = true
		}
		return
	}
	r.protected[dir] = true
	r.protected[path.Clean(name)] = true // a link, perhaps
}
