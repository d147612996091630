package mounts

import (
	"slices"

	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/policy"
)

// WritableTrees are the outermost paths that the policy lets the command
// write, without devices, sockets and pipes: a read-only mount does not keep
// these from being written. The result is nil when / is one of them.
func WritableTrees(paths []policy.Path) []string {
	out := []string{}
	for _, t := range paths {
		if t.Access&policy.Write == 0 || !t.Mode.IsDir() && !t.Mode.IsRegular() {
			continue
		}
		if t.Path == "/" {
			return nil
		}
		out = append(out, t.Path)
	}
	slices.SortFunc(out, landlock.ComparePaths)
	outer := ""
	return slices.DeleteFunc(out, func(p string) bool {
		if outer == "" || !policy.Within(p, outer) {
			outer = p
		}
		return p != outer
	})
}

// joinMounts sorts mounts so that a directory comes before what lies in it,
// and leaves out what lies in something masked or is mounted twice. A mask
// outranks all else.
func joinMounts(ms []Mount) []Mount {
	rank := map[Kind]int{Mask: 0, Protect: 1, Pin: 2}
	slices.SortStableFunc(ms, func(a, b Mount) int {
		if c := landlock.ComparePaths(a.Path, b.Path); c != 0 {
			return c
		}
		return rank[a.Kind] - rank[b.Kind]
	})
	var out []Mount
	hidden := "" // the last directory of which nothing below needs a mount
	for _, m := range ms {
		switch {
		case len(out) > 0 && out[len(out)-1].Path == m.Path:
			continue
		case hidden != "" && policy.Within(m.Path, hidden):
			continue
		}
		out = append(out, m)
		if m.Kind == Mask && m.Dir {
			hidden = m.Path
		}
	}
	return out
}
