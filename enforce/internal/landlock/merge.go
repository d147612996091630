package landlock

import (
	"cmp"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// MergeRules sorts rules by path, joins those on the same path and leaves out
// those that lie below others which allow as much: Landlock adds up what the
// rules on all ancestors allow, and each rule costs two system calls.
//
// The origin of a joined rule is that of the first.
func MergeRules(rules []PathRule) []PathRule {
	order := make([]int, len(rules)) // a rule is big to be moved
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(ComparePaths(rules[a].Path, rules[b].Path), a-b) })

	out := make([]PathRule, 0, len(rules))
	var open []PathRule // the directories that the current path lies below, with what is allowed there in all
	for i := 0; i < len(order); {
		r := rules[order[i]]
		for i++; i < len(order) && rules[order[i]].Path == r.Path; i++ {
			r.Rights |= rules[order[i]].Rights
			r.Part = r.Part && rules[order[i]].Part
		}
		for len(open) > 0 && !policy.Within(r.Path, open[len(open)-1].Path) {
			open = open[:len(open)-1]
		}
		var have uint64
		if len(open) > 0 {
			have = open[len(open)-1].Rights
		}
		if r.Rights&^have == 0 {
			continue
		}
		out = append(out, r)
		if r.Dir {
			open = append(open, PathRule{Path: r.Path, Rights: have | r.Rights})
		}
	}
	return out
}

// ComparePaths sorts a directory right before what lies below it: as strings,
// with "/" before every other byte.
func ComparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' {
			return -1
		}
		if b[i] == '/' {
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}
