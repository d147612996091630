package review

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
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
	for _, p := range slices.Collect(maps.Keys(r.protected)) {
		r.protect("", p, false)
	}
	for repo := range repos {
		r.learnSettings(repo)
	}
	r.learnLinks(links)
}

// learnLinks finds what links lead to that have names that programs outside know, also by way of others.
func (r *Review) learnLinks(links map[int][]string) {
	followed := make(map[key][]key) // links, with the names that they had
	for range maxNested {
		more := false
		for tree, all := range links {
			for _, rel := range all {
				link := key{tree, rel}
				names := r.acting(link)
				if r.left < 0 {
					return
				}
				if slices.Equal(names, followed[link]) {
					continue
				}
				r.follow(link, names)
				followed[link] = names
				more = true
			}
		}
		if !more {
			return
		}
	}
	r.unknown = true
}

// acting returns the names of a link that programs outside know, also by way of others. One that they know with all
// that is below it is enough.
func (r *Review) acting(link key) (names []key) {
	for _, at := range append([]key{link}, r.otherNames(link)...) {
		if r.reason(key{at.tree, at.path + "/any"}, false) != "" {
			return []key{at}
		}
		again := at.tree == link.tree && strings.HasPrefix(at.path, link.path+"/") // through itself
		if !again && r.reason(at, true) != "" {
			names = append(names, at)
		}
	}
	return names
}

// reason returns why programs outside run or trust what has a name, or come to it through a link of that name, or "".
func (r *Review) reason(name key, isLink bool) string {
	why, is := known(r.names(name), isLink)
	if !is && r.isProtected(r.full(name)) {
		return trusted
	}
	return why
}

// follow notes where a link leads that has such names. A change of what is on the way changes what has the names.
func (r *Review) follow(link key, names []key) {
	ends := r.ends(r.full(link), r.reason(names[0], true)+" as "+names[0].path)
	for _, end := range ends {
		at, in := r.place(end)
		for _, name := range names {
			all := r.others[at]
			if in && at != name && r.spend(costsLook+len(all)) && !slices.Contains(all, name) {
				r.others[at] = append(all, name)
			}
		}
	}
}

// otherNames returns the names that a path has by way of links with names that programs outside know.
func (r *Review) otherNames(at key) (all []key) {
	if len(r.others) == 0 {
		return nil
	}
	for dir := at.path; ; dir = path.Dir(dir) {
		below := at.path
		if dir != "." {
			below = strings.TrimPrefix(at.path[len(dir):], "/")
		}
		for _, other := range r.others[key{at.tree, dir}] {
			if r.spend(costsLook + len(other.path) + len(below)) {
				all = append(all, key{other.tree, path.Join(other.path, below)})
			}
		}
		if dir == "." {
			return all
		}
	}
}

// throughLink reports whether programs outside run or trust a path by another name, which is in why.
func (r *Review) throughLink(at key, isLink bool) (why string, is bool) {
	for _, other := range r.otherNames(at) {
		why := r.reason(other, isLink)
		if why != "" {
			return why + " as " + other.path, true
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
