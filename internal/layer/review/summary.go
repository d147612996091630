package review

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/units"
)

const (
	maxLines  = 20 // of a summary
	maxAlone  = 3  // how many files in one directory have a line each
	maxColumn = 40 // how wide a column of names is

	// maxCompared is how many bytes are compared by lines to count these. A command can write files for which
	// that takes long.
	maxCompared = 16 << 20
)

// line is a line of a summary or a list, with the changes that it stands for.
type line struct {
	label
	changes []*layer.Change
}

// label is what the changes of a line have in common.
type label struct {
	class class
	op    layer.Op
	name  string // of the only change, or of a directory
	why   string // they need a look
	whole bool   // the directory is added or removed with all that is in it
}

// class is the place of a line.
type class int

const (
	needsLook class = iota
	changed
	gone
	newProgram
	otherNew
)

// Summary says for people how much would change, and lists what at most some twenty lines hold: first
// what needs a look, then what changes or goes, new programs, and what else is new.
func (r *Review) Summary() string {
	order := make([]int, len(r.Changes))
	for i := range order {
		order[i] = i
	}
	var all []line
	for _, l := range r.lines(order, r.summed) {
		all = append(all, r.apart(l)...)
	}
	more := 0
	for len(all) > maxLines {
		last := len(all) - 1
		more += max(len(filesOf(all[last].changes)), 1)
		all = all[:last]
	}
	text := r.head() + r.layout(all)
	if more > 0 {
		text += fmt.Sprintf("  and %s more\n", units.Thousands(more))
	}
	return text
}

// List says for people how much would change, and lists every change once: first what needs a look, then
// the others, tree by tree, in each directory the directories first. A directory that is added or removed as a
// whole is one line.
func (r *Review) List() string {
	if len(r.Changes) == 0 {
		return "nothing is left to apply\n"
	}
	var order []int
	var others []int
	for i := range r.Changes {
		if len(r.looks[i]) > 0 {
			order = append(order, i)
		} else {
			others = append(others, i)
		}
	}
	slices.SortFunc(others, func(x, y int) int {
		a := &r.Changes[x]
		b := &r.Changes[y]
		return cmp.Or(cmp.Compare(a.Tree, b.Tree), dirsFirst(a, b))
	})
	return r.head() + r.layout(r.lines(append(order, others...), r.listed))
}

// head is the first line. It counts all changes, as an apply does.
func (r *Review) head() string {
	files := make(map[layer.Op]int)
	dirs := make(map[layer.Op]int)
	for i := range r.Changes {
		c := &r.Changes[i]
		if mainMode(c).IsDir() {
			dirs[c.Op]++
		} else {
			files[c.Op]++
		}
	}
	var below []string
	for i := range r.trees {
		below = append(below, r.treeName(i))
	}
	added := entries(files[layer.Add], dirs[layer.Add])
	if dirs[layer.Add] == 0 {
		added = count(files[layer.Add], "file", "files")
	}
	text := fmt.Sprintf("%s would be added, %s changed, %s removed below %s", added,
		entries(files[layer.Modify], dirs[layer.Modify]), entries(files[layer.Remove], dirs[layer.Remove]),
		strings.Join(below, " and "))
	if looks := r.needing(); looks > 0 {
		text += "; " + count(looks, "needs a look", "need a look")
	}
	return text + "\n"
}

// entries writes how many files and directories there are, of files alone only the number.
func entries(files, dirs int) string {
	switch {
	case dirs == 0:
		return units.Thousands(files)
	case files == 0:
		return count(dirs, "directory", "directories")
	}
	return count(files, "file", "files") + " and " + count(dirs, "directory", "directories")
}

// lines puts changes together that have the same label.
func (r *Review) lines(order []int, labelOf func(i int) label) (all []line) {
	at := make(map[label]int)
	for _, i := range order {
		l := labelOf(i)
		n, known := at[l]
		if !known {
			n = len(all)
			at[l] = n
			all = append(all, line{label: l})
		}
		all[n].changes = append(all[n].changes, &r.Changes[i])
	}
	slices.SortStableFunc(all, func(x, y line) int { return cmp.Compare(x.class, y.class) })
	return all
}

// listed is the label in a list of the change with this index.
func (r *Review) listed(i int) label {
	c := &r.Changes[i]
	if len(r.looks[i]) > 0 {
		return label{needsLook, c.Op, r.Shown(c), r.why(i), false}
	}
	if top := r.topmost(c); top != "" {
		return label{otherNew, c.Op, r.DirName(c.Tree, top), "", true}
	}
	return label{otherNew, c.Op, r.Shown(c), "", false}
}

// summed is the label in a summary of the change with this index.
func (r *Review) summed(i int) label {
	c := &r.Changes[i]
	top := r.topmost(c)
	dir := path.Dir(c.Path)
	inDir := r.DirName(c.Tree, dir) + "…"
	switch {
	case len(r.looks[i]) > 0:
		return label{needsLook, c.Op, inDir, r.why(i), false}
	case c.Op == layer.Modify:
		return label{changed, c.Op, r.Shown(c), "", false}
	case isProgram(c) && (top == "" || path.Base(dir) == ".bin" || dir == path.Join(top, "bin")):
		return label{newProgram, c.Op, inDir, "", false} // a package has many others that nobody calls by name
	}
	class := otherNew
	if c.Op == layer.Remove {
		class = gone
	}
	if top != "" {
		return label{class, c.Op, r.DirName(c.Tree, top), "", true}
	}
	return label{class, c.Op, inDir, "", false}
}

// apart gives each change a line of its own if a line has few, or if a directory has one file.
func (r *Review) apart(l line) (all []line) {
	files := filesOf(l.changes)
	if l.whole && len(files) != 1 || len(files) > maxAlone {
		return []line{l}
	}
	if len(files) == 0 {
		files = l.changes
	}
	for _, c := range files {
		all = append(all, line{label{l.class, c.Op, r.Shown(c), l.why, false}, []*layer.Change{c}})
	}
	return all
}

// topmost returns the topmost directory that is added or removed as a whole with a change in it, or is that
// change; "" if there is none.
func (r *Review) topmost(c *layer.Change) (dir string) {
	if c.Op == layer.Modify {
		return ""
	}
	for p := c.Path; p != "."; p = path.Dir(p) {
		i, is := r.at[key{c.Tree, p}]
		if is && r.Changes[i].Op == c.Op && mainMode(&r.Changes[i]).IsDir() {
			dir = p
		}
	}
	return dir
}

// dirsFirst compares two changes: what is in a directory, or is one, comes before files beside that.
func dirsFirst(x, y *layer.Change) int {
	a := x.Path
	b := y.Path
	for {
		first, restA, moreA := strings.Cut(a, "/")
		second, restB, moreB := strings.Cut(b, "/")
		if first == second && moreA && moreB {
			a = restA
			b = restB
			continue
		}
		if first == second || first == "." || second == "." { // a directory and what is in it
			return cmp.Compare(depth(x.Path), depth(y.Path))
		}
		dirA := moreA || mainMode(x).IsDir()
		dirB := moreB || mainMode(y).IsDir()
		switch {
		case dirA == dirB:
			return strings.Compare(first, second)
		case dirA:
			return -1
		}
		return 1
	}
}

// depth returns how many names a path has.
func depth(rel string) int {
	if rel == "." {
		return 0
	}
	return strings.Count(rel, "/") + 1
}

// layout writes lines in columns.
func (r *Review) layout(all []line) string {
	wide := 0
	for i := range all {
		wide = max(wide, utf8.RuneCountInString(all[i].name))
	}
	wide = min(wide, maxColumn)
	var b strings.Builder
	left := int64(maxCompared)
	for _, l := range all {
		c := l.changes[0]
		text := l.why
		switch {
		case l.whole || len(l.changes) > 1:
			text = strings.TrimSuffix(filesText(filesOf(l.changes))+": "+text, ": ")
		case text == "" || l.op == layer.Modify:
			text = strings.TrimSuffix(r.brief(c, left > 0)+"; "+text, "; ")
			left -= min(c.Size, maxText) + min(wasSize(c), maxText)
		}
		fmt.Fprintf(&b, "  %s %-*s  %s\n", sign(l.op), wide, l.name, text)
	}
	return b.String()
}

// filesOf leaves out directories.
func filesOf(all []*layer.Change) (files []*layer.Change) {
	for _, c := range all {
		if !mainMode(c).IsDir() {
			files = append(files, c)
		}
	}
	return files
}

// filesText says in few words what some files are.
func filesText(files []*layer.Change) string {
	programs := 0
	size := int64(0)
	for _, c := range files {
		if mainMode(c).IsRegular() {
			size += c.Size
		}
		if isProgram(c) {
			programs++
		}
	}
	switch {
	case len(files) == 0:
		return "directory"
	case programs == len(files):
		return count(programs, "program", "programs")
	}
	text := count(len(files), "file", "files")
	if programs > 0 {
		text += ", " + count(programs, "program", "programs")
	}
	if size > 0 {
		text += ", " + units.Short(size)
	}
	return text
}

// brief says in few words what a change is, and compares the lines of a changed file if lines is set.
func (r *Review) brief(c *layer.Change, lines bool) string {
	if c.Op == layer.Add && c.Type&fs.ModeSymlink != 0 {
		return r.what(c, &texts{})
	}
	if c.Op != layer.Modify {
		what := kind(mainMode(c))
		if isProgram(c) {
			what = "program"
		}
		if mainMode(c).IsRegular() {
			what += sizes(c)
		}
		return what
	}
	var t texts
	if lines {
		t = r.text(c)
	} else if c.Type.IsRegular() {
		t.why = "not compared by lines"
	}
	what := r.what(c, &t)
	if added, removed := t.counts(); added+removed > 0 {
		what = strings.TrimSuffix(fmt.Sprintf("+%d -%d; %s", added, removed, what), "; ")
	}
	return cmp.Or(what, "times or attributes")
}

// isProgram reports whether a change makes a program: a file that can be executed, or a link in a
// directory of programs.
func isProgram(c *layer.Change) bool {
	link := c.Type&fs.ModeSymlink != 0 && ofPrograms(path.Dir(c.Path))
	return c.Op == layer.Add && (link || program(c.Type))
}

// Shown writes the path of a change for people, with a slash after a directory.
func (r *Review) Shown(c *layer.Change) string {
	if mainMode(c).IsDir() && c.Path != "." {
		return r.DirName(c.Tree, c.Path)
	}
	return r.name(c.Tree, c.Path)
}

// DirName writes the path of a directory for people.
func (r *Review) DirName(tree int, dir string) string { return r.name(tree, dir) + "/" }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Thousands(n) + " " + many
}
