package review

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/layer"
)

// List lists the changes in a tree, one on each line, in each directory the directories first. A
// directory that is added or removed as a whole is one line; what needs a look in it has its own.
func (r *Review) List(tree int) string {
	var all []int
	for i := range r.Changes {
		if r.Changes[i].Tree == tree {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(x, y int) int { return dirsFirst(&r.Changes[x], &r.Changes[y]) })
	inside := make(map[string][]*layer.Change) // the directories that are one line
	var rows []row
	for _, i := range all {
		c := &r.Changes[i]
		top := r.topmost(c)
		if top != "" {
			inside[top] = append(inside[top], c)
		}
		switch {
		case top == "", len(r.looks[i]) > 0 && top != c.Path:
			rows = append(rows, row{op: c.Op, name: r.shown(c), text: r.why(i), change: c})
		case top == c.Path:
			rows = append(rows, row{op: c.Op, name: r.shown(c), whole: top})
		}
	}
	for i := range rows {
		if in := inside[rows[i].whole]; in != nil {
			rows[i].text = filesText(filesOf(in))
		}
	}
	return r.layout(rows)
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
