package enforce

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
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

// maxDeniedEntries is how many entries of denied directories are looked at, in
// all of them together.
const maxDeniedEntries = 1000

// note takes a file or directory that d denies.
func (n *manyNames) note(p string, st policy.Stat, d policy.DenyPath) {
	if st.Mode.IsDir() && !slices.ContainsFunc(n.dirs, func(have deniedDir) bool { return within(p, have.path) }) {
		n.dirs = append(n.dirs, deniedDir{p, d})
	}
	if !st.Mode.IsRegular() || st.Links < 2 {
		return
	}
	i := slices.IndexFunc(n.files, func(f namedFile) bool { return f.id == st.ID })
	if i < 0 {
		i = len(n.files)
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
	left := maxDeniedEntries
	for len(n.dirs) > 0 {
		dir := n.dirs[0]
		entries, _ := readSome(host, dir.path, left+1)
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
func (d *denials) noteNames() {
	if d.host == nil || d.host.Lstat == nil {
		return
	}
	for _, b := range d.deny {
		if b.Glob {
			continue // noted as they are found
		}
		if st, err := d.host.Lstat(b.Pattern); err == nil {
			d.names.note(b.Pattern, st, b.DenyPath)
		}
	}
}

// withoutLinks leaves out the rules for files that are denied by another name:
// a rule on a file is one on its inode, and so holds for all its names.
func (d *denials) withoutLinks(rules []tree, hits []hit, deny []barred) []tree {
	denied := make(map[policy.FileID]bool, len(hits))
	for _, h := range hits {
		if st, err := d.host.Lstat(h.path); err == nil {
			denied[st.ID] = !h.dir // a directory has no other names
			d.names.note(h.path, st, by(deny, h))
		}
	}
	return slices.DeleteFunc(rules, func(t tree) bool {
		if t.mode.IsDir() || !denied[t.id] {
			return false
		}
		d.names.closed(t.path, t.id)
		return true
	})
}

// by is the denial that names a hit.
func by(deny []barred, h hit) policy.DenyPath {
	return deny[max(0, slices.IndexFunc(deny, func(b barred) bool { return b.covers(h.path) }))].DenyPath
}

// maxNamed is how many files a gap names.
const maxNamed = 3

// linked is a denial of which some file may be open by another name.
type linked struct {
	deny policy.DenyPath
	why  string
	look string // the command that looks for the other names
}

// links says which denied files have a name that is not denied, once for each
// denial, and in which denied directories that was not looked for.
func (d *denials) links() []linked {
	d.noteNames()
	var out []linked
	var unseen []deniedDir
	if d.host != nil && d.host.ReadDir != nil {
		unseen = d.names.lookInto(d.host)
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
		out = append(out, linked{files[0].deny, strings.Join(why, ", "), "find / -xdev -samefile " + quoteWord(files[0].paths[0])})
	}
	for i, dir := range unseen {
		if !slices.ContainsFunc(unseen[:i], func(u deniedDir) bool { return u.deny.Pattern == dir.deny.Pattern }) {
			why := fmt.Sprintf("only %d entries of denied directories are looked at for files with several names (hard links), and not all of %s", maxDeniedEntries, dir.path)
			out = append(out, linked{dir.deny, why, "find " + quoteWord(dir.path) + " -xdev -type f -links +1"})
		}
	}
	return out
}
