package review

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/safepath"
)

// maxSearched is how many entries of a tree are looked at for links.
const maxSearched = 1_000_000

// maxNested is how often links may lead to links.
const maxNested = 8

// learn finds the links in trees by which programs outside come to what they run or trust, and what git's settings
// name: such a file may have any name, and be in another tree. A link that a change makes is judged itself.
func (r *Review) learn() {
	if len(r.Changes) == 0 {
		return
	}
	repos := make(map[key]bool)
	for i := range r.Changes {
		c := &r.Changes[i]
		for _, repo := range reposIn(c.Path) {
			repos[key{c.Tree, repo}] = true
		}
	}
	links := make(map[int][]string)
	for tree := range r.trees {
		found, whole := r.files.Find(tree)
		links[tree] = found.Links
		r.unknown = r.unknown || !whole
		for _, repo := range found.Repos {
			repos[key{tree, repo}] = true
		}
	}
	r.learnUser()
	for repo := range repos {
		r.learnSettings(repo)
	}
	r.learnLinks(links)
}

// learnLinks finds what links lead to that have names that programs outside know, also by way of others.
func (r *Review) learnLinks(links map[int][]string) {
	for range maxNested {
		found := false
		for tree, all := range links {
			var left []string
			for _, rel := range all {
				if !r.leadsToActs(tree, rel) {
					left = append(left, rel)
					continue
				}
				r.follow(tree, rel)
				found = true
			}
			links[tree] = left
		}
		if !found {
			return
		}
	}
	r.unknown = true
}

// leadsToActs reports whether a link has a name that programs outside know, or has one by way of others.
func (r *Review) leadsToActs(tree int, rel string) bool {
	for _, at := range append(r.otherNames(tree, rel), key{tree, rel}) {
		_, acts := protect.Acts(r.names(at))
		_, leads := protect.Leads(r.names(at))
		if acts || leads || r.isProtected(r.full(at)) {
			return true
		}
	}
	return false
}

// follow notes where a link leads, in its own tree or in another one.
func (r *Review) follow(tree int, rel string) {
	to, is := r.link(tree, rel)
	if !is {
		return
	}
	names := append(r.otherNames(tree, rel), key{tree, rel})
	if at, in := r.target(key{tree, path.Dir(rel)}, to); in {
		r.others[at] = append(r.others[at], names...)
	}
}

// target returns where a path leads from a directory, and whether that is in a tree. It follows links as they would
// be once all changes are made real.
func (r *Review) target(dir key, to string) (at key, in bool) {
	w := way{r: r, tree: dir.tree}
	if dir.path != "." {
		w.at = strings.Split(dir.path, "/")
	}
	if !w.out(to) {
		return key{dir.tree, path.Join(".", path.Join(w.at...))}, true
	}
	if !path.IsAbs(to) {
		to = path.Join(r.full(dir), to)
	}
	return r.place(to)
}

// otherNames returns the names that a path has by way of links with names that programs outside know.
func (r *Review) otherNames(tree int, rel string) (all []key) {
	if len(r.others) == 0 {
		return nil
	}
	for dir := rel; ; dir = path.Dir(dir) {
		below := rel
		if dir != "." {
			below = strings.TrimPrefix(rel[len(dir):], "/")
		}
		for _, other := range r.others[key{tree, dir}] {
			all = append(all, key{other.tree, path.Join(other.path, below)})
		}
		if dir == "." {
			return all
		}
	}
}

// throughLink reports whether programs outside run or trust a path by another name, which is in why.
func (r *Review) throughLink(tree int, rel string) (why string, is bool) {
	for _, at := range r.otherNames(tree, rel) {
		if why, is := protect.Acts(r.names(at)); is {
			return why + " as " + at.path, true
		}
		if r.isProtected(r.full(at)) {
			return trusted + " as " + at.path, true
		}
	}
	return "", false
}

// Found is what a search of a tree finds.
type Found struct {
	Links []string // symbolic links
	Repos []string // .git, and what else has the name of a git directory
}

// Find looks at outer directories first.
func (d *opened) Find(tree int) (Found, bool) { return find(d.trees[tree], maxSearched) }

// find searches the first left entries of a tree.
func find(root *os.File, left int) (found Found, whole bool) {
	const some = 4096
	for dirs := []string{"."}; len(dirs) > 0; dirs = dirs[1:] {
		dir, err := safepath.OpenBelow(root, dirs[0], os.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			continue // what is closed to the user is closed to programs, too
		}
		if err != nil {
			return found, false
		}
		for err == nil {
			var entries []fs.DirEntry
			entries, err = dir.ReadDir(min(some, left+1))
			for _, e := range entries {
				name := path.Join(dirs[0], e.Name())
				switch e.Type() {
				case fs.ModeDir:
					dirs = append(dirs, name)
				case fs.ModeSymlink:
					found.Links = append(found.Links, name)
				}
				if protect.IsGitDir(e.Name()) {
					found.Repos = append(found.Repos, name)
				}
			}
			left -= len(entries)
			if left < 0 {
				dir.Close()
				return found, false
			}
		}
		dir.Close()
		if err != io.EOF {
			return found, false
		}
	}
	return found, true
}
