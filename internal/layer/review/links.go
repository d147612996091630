package review

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/safepath"
)

// maxSearched is how many entries of a tree are looked at for links.
const maxSearched = 1_000_000

// maxNested is how often links may lead to links.
const maxNested = 8

// learnLinks finds the links in trees by which programs outside come to what they run or trust: the file may
// have any name. A link that a change makes is judged itself.
func (r *Review) learnLinks() {
	changed := make(map[int]bool)
	for i := range r.Changes {
		changed[r.Changes[i].Tree] = true
	}
	links := make(map[int][]string)
	for tree := range changed {
		all, whole := r.files.Links(tree)
		links[tree] = all
		r.unknown[tree] = !whole
	}
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
}

// leadsToActs reports whether a link has a name that programs outside know, or has one by way of others.
func (r *Review) leadsToActs(tree int, rel string) bool {
	for _, name := range append(r.otherNames(tree, rel), rel) {
		_, acts := protect.Acts(name)
		_, leads := protect.Leads(name)
		if acts || leads {
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
	names := append(r.otherNames(tree, rel), rel)
	w := way{r: r, tree: tree}
	if dir := path.Dir(rel); dir != "." {
		w.at = strings.Split(dir, "/")
	}
	at := key{tree, ""}
	if !w.out(to) {
		at.path = path.Clean(strings.Join(w.at, "/"))
	} else {
		at = r.inTree(tree, rel, to)
	}
	if at.path != "" {
		r.names[at] = append(r.names[at], names...)
	}
}

// inTree returns where a link leads that leaves its tree. The path is "" if that is in no other tree.
func (r *Review) inTree(tree int, rel, to string) key {
	if !path.IsAbs(to) {
		to = path.Join(r.trees[tree], path.Dir(rel), to)
	}
	for i, top := range r.trees {
		below, err := filepath.Rel(top, path.Clean(to))
		if err == nil && filepath.IsLocal(below) {
			return key{i, below}
		}
	}
	return key{}
}

// otherNames returns the names that a path has by way of links with names that programs outside know.
func (r *Review) otherNames(tree int, rel string) (all []string) {
	if len(r.names) == 0 {
		return nil
	}
	for dir := rel; ; dir = path.Dir(dir) {
		below := rel
		if dir != "." {
			below = strings.TrimPrefix(rel[len(dir):], "/")
		}
		for _, name := range r.names[key{tree, dir}] {
			all = append(all, path.Join(name, below))
		}
		if dir == "." {
			return all
		}
	}
}

// throughLink reports whether programs outside run or trust a path by another name, which is in why.
func (r *Review) throughLink(tree int, rel string) (why string, is bool) {
	for _, name := range r.otherNames(tree, rel) {
		if why, is := protect.Acts(name); is {
			return why + " as " + name, true
		}
	}
	return "", false
}

// Links looks at outer directories first.
func (d *opened) Links(tree int) (all []string, whole bool) {
	return findLinks(d.trees[tree], maxSearched)
}

// findLinks finds the links among the first left entries of a tree.
func findLinks(root *os.File, left int) (all []string, whole bool) {
	const some = 4096
	for dirs := []string{"."}; len(dirs) > 0; dirs = dirs[1:] {
		dir, err := safepath.OpenBelow(root, dirs[0], os.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			continue // what is closed to the user is closed to programs, too
		}
		if err != nil {
			return all, false
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
					all = append(all, name)
				}
			}
			left -= len(entries)
			if left < 0 {
				dir.Close()
				return all, false
			}
		}
		dir.Close()
		if err != io.EOF {
			return all, false
		}
	}
	return all, true
}
