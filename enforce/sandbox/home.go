package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
)

// maxHome bounds how many entries of a private home are looked at.
const maxHome = 100_000

// homeWrites lists where in a private home something is that was not put there for the
// command: directories, which end in "/", and files at the top. It follows no links, nor
// one that the command has put in the directory's place.
func homeWrites(plan *enforce.Plan) (out []string) {
	if plan == nil || plan.Mounts.Home() == nil {
		return nil
	}
	d, seen := plan.Mounts.Home(), 0
	_ = filepath.WalkDir(d.From, func(p string, e fs.DirEntry, err error) error {
		if seen++; seen > maxHome {
			return filepath.SkipAll
		}
		rel, below := strings.CutPrefix(p, d.From+"/")
		if err != nil || e.IsDir() || !below || d.Makes(d.Path+"/"+rel) {
			return nil // what can't be looked into has been told by what lies around it
		}
		// A directory at the top is one program's, and in these places one further down.
		parts := strings.SplitAfter(rel, "/")
		deep := max(1, map[string]int{".cache/": 2, ".config/": 2, ".local/": 3}[parts[0]])
		out = append(out, d.Path+"/"+strings.Join(parts[:min(deep, len(parts))], ""))
		return nil
	})
	return slices.Compact(out)
}
