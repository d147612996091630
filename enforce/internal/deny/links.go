package deny

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// manyNames are the denied files that have several names (hard links). A
// denial is about a path: by another name, in a tree that is allowed, the file
// is as open as its neighbours. Where its names are, the kernel does not tell.
type manyNames struct {
	files []namedFile
	dirs  []deniedDir // not yet looked into
}

// deniedDir is a directory of which nothing is open, and with it a name of each
// file in it.
type deniedDir struct {
	path string
	deny policy.DenyPath
}

type namedFile struct {
	id    policy.FileID
	links uint64   // names that the file has
	paths []string // those of them that lead nowhere
	deny  policy.DenyPath
}

// MaxDeniedEntries is how many entries of denied directories are looked at, in
// all of them together.
const MaxDeniedEntries = 1000

// note takes a file or directory that d denies.
func (n *manyNames) note(p string, st policy.Stat, d policy.DenyPath) {
	if st.Mode.IsDir() && !slices.ContainsFunc(n.dirs, func(have deniedDir) bool { return policy.Within(p, have.path) }) {
		n.dirs = append(n.dirs, deniedDir{p, d})
	}
	if !st.Mode.IsRegular() || st.Links < 2 {
		return
	}
	if !slices.ContainsFunc(n.files, func(f namedFile) bool { return f.id == st.ID }) {
		n.files = append(n.files, namedFile{id: st.ID, links: st.Links, deny: d})
	}
	n.closed(p, st.ID)
}

// closed takes another name of a file that was noted, which leads nowhere
// either.
func (n *manyNames) closed(p string, id policy.FileID) {
	i := slices.IndexFunc(n.files, func(f namedFile) bool { return f.id == id })
	if i >= 0 && !slices.Contains(n.files[i].paths, p) {
		n.files[i].paths = append(n.files[i].paths, p)
	}
}

// lookInto notes the files in the denied directories, those near their tops
// first, and gives the directories for which the bound left nothing. One that
// can't be listed is passed over: who can't search it has made no link to what
// is in it.
func (n *manyNames) lookInto(host *policy.Host) []deniedDir {
	left := MaxDeniedEntries
	for len(n.dirs) > 0 {
		dir := n.dirs[0]
		entries, _ := policy.ReadSome(host, dir.path, left+1)
		if len(entries) > left {
			return n.dirs
		}
		left -= len(entries)
		n.dirs = n.dirs[1:]
		for _, e := range entries {
			name := path.Join(dir.path, e.Name())
			if e.IsDir() {
				n.dirs = append(n.dirs, deniedDir{name, dir.deny})
			} else if st, err := host.Lstat(name); err == nil && e.Type().IsRegular() {
				n.note(name, st, dir.deny)
			}
		}
	}
	return nil
}

// noteNames takes what the denials name without wildcards, whether it is in
// reach by that name or not.
func (d *Denials) noteNames() {
	if d.Host == nil || d.Host.Lstat == nil {
		return
	}
	for _, b := range d.Deny {
		if b.Glob {
			continue // noted as they are found
		}
		if st, err := d.Host.Lstat(b.Pattern); err == nil {
			d.names.note(b.Pattern, st, b.DenyPath)
		}
	}
}

// withoutLinks leaves out the rules for files that are denied by another name:
// a rule on a file is one on its inode, and so holds for all its names.
func (d *Denials) withoutLinks(rules []Tree, hits []Hit, deny []Barred) []Tree {
	denied := make(map[policy.FileID]bool, len(hits))
	for _, h := range hits {
		if st, err := d.Host.Lstat(h.Path); err == nil {
			denied[st.ID] = !h.Dir // a directory has no other names
			d.names.note(h.Path, st, by(deny, h))
		}
	}
	return slices.DeleteFunc(rules, func(t Tree) bool {
		if t.Mode.IsDir() || !denied[t.ID] {
			return false
		}
		d.names.closed(t.Path, t.ID)
		return true
	})
}

// by is the denial that names a hit.
func by(deny []Barred, h Hit) policy.DenyPath {
	return deny[max(0, slices.IndexFunc(deny, func(b Barred) bool { return b.covers(h.Path) }))].DenyPath
}

// maxNamed is how many files a gap names.
const maxNamed = 3

// Linked is a denial of which some file may be open by another name.
type Linked struct {
	Deny policy.DenyPath
	Why  string
	Look string // the command that looks for the other names
}

// Links says which denied files have a name that is not denied, once for each
// denial, and in which denied directories that was not looked for.
func (d *Denials) Links() []Linked {
	d.noteNames()
	var out []Linked
	var unseen []deniedDir
	if d.Host != nil && d.Host.ReadDir != nil {
		unseen = d.names.lookInto(d.Host)
	}
	open := map[string][]namedFile{}
	var order []string
	for _, f := range d.names.files {
		if uint64(len(f.paths)) >= f.links {
			continue // all of its names
		}
		if open[f.deny.Pattern] == nil {
			order = append(order, f.deny.Pattern)
		}
		open[f.deny.Pattern] = append(open[f.deny.Pattern], f)
	}
	for _, pattern := range order {
		files := open[pattern]
		why := make([]string, 0, maxNamed+1)
		for i, f := range files {
			if i == maxNamed {
				why = append(why, fmt.Sprintf("and %d more files", len(files)-i))
				break
			}
			why = append(why, fmt.Sprintf("%s has %d names (hard links)", f.paths[0], f.links))
		}
		out = append(out, Linked{files[0].deny, strings.Join(why, ", "), "find / -xdev -samefile " + shell.Quote(files[0].paths[0])})
	}
	for i, dir := range unseen {
		if !slices.ContainsFunc(unseen[:i], func(u deniedDir) bool { return u.deny.Pattern == dir.deny.Pattern }) {
			why := fmt.Sprintf("only %d entries of denied directories are looked at for files with several names (hard links), and not all of %s", MaxDeniedEntries, dir.path)
			out = append(out, Linked{dir.deny, why, "find " + shell.Quote(dir.path) + " -xdev -type f -links +1"})
		}
	}
	return out
}
