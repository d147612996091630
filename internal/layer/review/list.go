package review

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/layer"
)

// List says for people how much would change, and lists every change once: first what needs a look, then
// the others, tree by tree, in each directory the directories first. A directory that is added or removed as a
// whole is one line.
func (r *Review) List() string {
	if len(r.Changes) == 0 {
		return "nothing is left to apply\n"
	}
	rows := make([]row, 0, len(r.Changes))
	var others []int
	for i := range r.Changes {
		c := &r.Changes[i]
		if len(r.looks[i]) > 0 {
			rows = append(rows, row{op: c.Op, name: r.shown(c), text: r.why(i), change: c})
		} else {
			others = append(others, i)
		}
	}
	slices.SortFunc(others, func(x, y int) int {
		a := &r.Changes[x]
		b := &r.Changes[y]
		return cmp.Or(cmp.Compare(a.Tree, b.Tree), dirsFirst(a, b))
	})
	inside := make(map[key][]*layer.Change) // the directories that are one line
	for _, i := range others {
		c := &r.Changes[i]
		top := key{c.Tree, r.topmost(c)}
		if in := inside[top]; top.path != "" && in != nil {
			inside[top] = append(in, c)
			continue
		}
		w := row{op: c.Op, name: r.shown(c), change: c}
		if top.path != "" {
			w = row{op: c.Op, name: r.dirName(top), whole: top}
			inside[top] = []*layer.Change{c}
		}
		rows = append(rows, w)
	}
	for i := range rows {
		if in := inside[rows[i].whole]; in != nil {
			rows[i].text = filesText(filesOf(in))
		}
	}
	return r.head() + r.layout(rows)
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
		if dirA != dirB {
			if dirA {
				return -1
			}
			return 1
		}
		return strings.Compare(first, second)
	}
}

// depth returns how many names a path has.
func depth(rel string) int {
	if rel == "." {
		return 0
	}
	return strings.Count(rel, "/") + 1
}
