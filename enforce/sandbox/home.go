package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
)

// HomeWrite is what a command wrote into one directory of its private home, which is
// gone with the session.
type HomeWrite struct {
	Path  string // of the directory, or of a file at the top, as the command saw it
	Dir   bool
	Files int
	Bytes int64
}

// maxHome bounds how many entries of a private home are looked at.
const maxHome = 100_000

// homeWrites lists what is in a private home that was not put there for the command.
// It follows no links, nor one that the command has put in the directory's place.
func homeWrites(plan *enforce.Plan) (out []HomeWrite) {
	if plan == nil || plan.Mounts.Home() == nil {
		return nil
	}
	d, seen := plan.Mounts.Home(), 0
	_ = filepath.WalkDir(d.From, func(p string, e fs.DirEntry, err error) error {
		rel, below := strings.CutPrefix(p, d.From+"/")
		if seen++; seen > maxHome {
			return filepath.SkipAll
		}
		if err != nil || e.IsDir() || !below || d.Makes(d.Path+"/"+rel) {
			return nil // what can't be looked into has been told by what lies around it
		}
		// A directory at the top is one program's, and in these places one further down.
		parts := strings.Split(rel, "/")
		deep := max(1, map[string]int{".cache": 2, ".config": 2, ".local": 3}[parts[0]])
		w := HomeWrite{Path: d.Path + "/" + strings.Join(parts[:min(deep, len(parts))], "/"), Dir: len(parts) > deep}
		i := slices.IndexFunc(out, func(o HomeWrite) bool { return o.Path == w.Path })
		if i < 0 {
			i, out = len(out), append(out, w)
		}
		out[i].Files++
		if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
			out[i].Bytes += st.Size()
		}
		return nil
	})
	return out
}
