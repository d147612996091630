package review

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/units"
)

const (
	maxLines  = 20 // of a summary
	maxAlone  = 3  // how many changes of one kind in a directory have a line each
	maxColumn = 40 // how wide a column of names is

	// maxCompared is how many bytes are compared by lines to count these. A command can write files for which
	// that takes long.
	maxCompared = 16 << 20
)

// Summary says for people how much would change, and lists what at most some twenty lines hold: first
// what needs a look, then what changes or goes, new programs, and what else is new.
func (r *Review) Summary() string {
	rows := r.rows()
	more := 0
	for len(rows) > maxLines {
		last := len(rows) - 1
		more += rows[last].count
		rows = rows[:last]
	}
	text := r.head() + r.layout(rows)
	if more > 0 {
		text += fmt.Sprintf("  and %s more\n", units.Thousands(more))
	}
	return text
}

// head is the first line of a summary. It counts directories only if nothing else changes.
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
	n := files
	noun := [2]string{"file", "files"}
	if len(files) == 0 {
		n = dirs
		noun = [2]string{"directory", "directories"}
	}
	var below []string
	for i := range r.trees {
		below = append(below, r.treeName(i))
	}
	line := fmt.Sprintf("%s would be added, %s changed, %s removed below %s", count(n[layer.Add], noun[0], noun[1]),
		units.Thousands(n[layer.Modify]), units.Thousands(n[layer.Remove]), strings.Join(below, " and "))
	switch looks := r.needing(); looks {
	case 0:
		return line + "\n"
	case 1:
		return line + "; 1 needs a look\n"
	default:
		return line + "; " + units.Thousands(looks) + " need a look\n"
	}
}

// group is what several changes have in common that may share a line.
type group struct {
	class class
	tree  int
	dir   string
	op    layer.Op
	why   string
	whole bool // the directory itself is added or removed
	alone int  // it shares its line with none; which change it is
}

// class is the place of a change in a summary.
type class int

const (
	needsLook class = iota
	changed
	gone
	newProgram
	otherNew
	classes
)

// rows makes the lines of a summary.
func (r *Review) rows() (rows []row) {
	var order [classes][]group
	members := make(map[group][]*layer.Change)
	for i := range r.Changes {
		c := &r.Changes[i]
		g := group{class: r.class(i), tree: c.Tree, dir: path.Dir(c.Path), op: c.Op}
		switch g.class {
		case needsLook:
			g.why = r.why(i)
		case changed:
			g.alone = i + 1
		case gone, otherNew:
			if top := r.topmost(c); top != "" {
				g.whole = true
				g.dir = top
			}
		}
		if members[g] == nil {
			order[g.class] = append(order[g.class], g)
		}
		members[g] = append(members[g], c)
	}
	for _, groups := range order {
		for _, g := range groups {
			rows = append(rows, r.grouped(&g, members[g])...)
		}
	}
	return rows
}

// class returns where the change with this index stands in a summary.
func (r *Review) class(i int) class {
	c := &r.Changes[i]
	switch {
	case len(r.looks[i]) > 0:
		return needsLook
	case c.Op == layer.Modify:
		return changed
	case c.Op == layer.Remove:
		return gone
	}
	top := r.topmost(c)
	dir := path.Dir(c.Path)
	if isProgram(c) && (top == "" || path.Base(dir) == ".bin" || dir == path.Join(top, "bin")) {
		return newProgram
	}
	return otherNew // a package has many programs in it that nobody calls by name
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

// grouped makes the lines of a group: one if there are many, or a directory as a whole.
func (r *Review) grouped(g *group, all []*layer.Change) (rows []row) {
	files := filesOf(all)
	if g.whole && len(files) != 1 || len(files) > maxAlone {
		w := row{op: g.op, name: r.dirName(key{g.tree, g.dir}), count: max(len(files), 1)}
		if !g.whole {
			w.name += "…"
		}
		w.text = filesText(files)
		if g.why != "" {
			w.text += ": " + g.why
		}
		return append(rows, w)
	}
	if len(files) == 0 {
		files = all
	}
	for _, c := range files {
		rows = append(rows, row{op: c.Op, name: r.shown(c), text: g.why, count: 1, change: c})
	}
	return rows
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

// row is a line of a summary or a listing. With a change, what it says of that is added when it is shown.
type row struct {
	op     layer.Op
	name   string
	text   string
	count  int // of changes
	change *layer.Change
	whole  key // the directory that it stands for
}

// layout writes rows in columns.
func (r *Review) layout(rows []row) string {
	wide := 0
	for _, w := range rows {
		wide = max(wide, utf8.RuneCountInString(w.name))
	}
	wide = min(wide, maxColumn)
	var b strings.Builder
	left := int64(maxCompared)
	for _, w := range rows {
		text := w.text
		if w.change != nil && (text == "" || w.op == layer.Modify) {
			text = strings.TrimSuffix(r.brief(w.change, left > 0)+"; "+text, "; ")
			left -= min(w.change.Size, maxText) + min(wasSize(w.change), maxText)
		}
		fmt.Fprintf(&b, "  %s %-*s  %s\n", sign(w.op), wide, w.name, text)
	}
	return b.String()
}

// brief says in few words what a change is, and compares the lines of a changed file if lines is set.
func (r *Review) brief(c *layer.Change, lines bool) string {
	if c.Op != layer.Modify {
		what := kind(mainMode(c))
		switch {
		case isProgram(c) && c.Type.IsRegular():
			what = "program"
		case c.Op == layer.Add && c.Type&fs.ModeSymlink != 0:
			return r.what(c, &texts{})
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
	if what == "" {
		what = "times or attributes"
	}
	return what
}

// isProgram reports whether a change makes a program: a file that can be executed, or a link in a
// directory of programs.
func isProgram(c *layer.Change) bool {
	if c.Op != layer.Add {
		return false
	}
	return program(c.Type) || c.Type&fs.ModeSymlink != 0 && ofPrograms(path.Dir(c.Path))
}

// shown writes the path of a change for people, with a slash after a directory.
func (r *Review) shown(c *layer.Change) string {
	name := r.name(c.Tree, c.Path)
	if mainMode(c).IsDir() && c.Path != "." {
		name += "/"
	}
	return name
}

// dirName writes the path of a directory for people.
func (r *Review) dirName(k key) string { return r.name(k.tree, k.path) + "/" }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Thousands(n) + " " + many
}
