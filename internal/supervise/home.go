package supervise

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce"
)

// homeWrites lists what the command wrote into a private home: directories, which end in
// "/", and files at the top. It follows no links, not even one that the command has put
// in place of the home directory.
func homeWrites(plan *enforce.Plan) (out []string) {
	if plan == nil || plan.Mounts == nil {
		return nil
	}
	for _, d := range plan.Mounts.Private {
		if d.From == "" {
			continue
		}
		kept := make(map[string]bool)
		for _, b := range slices.Concat(d.Made, d.Back) {
			kept[b.Path] = true
		}
		_ = filepath.WalkDir(d.From, func(p string, e fs.DirEntry, err error) error {
			rel, below := strings.CutPrefix(p, d.From+"/")
			if err != nil || e.IsDir() || !below || kept[d.Path+"/"+rel] {
				return nil // what can't be read is not listed by itself
			}
			// A directory at the top belongs to one program; in these, one further down does.
			parts := strings.SplitAfter(rel, "/")
			deep := max(1, map[string]int{".cache/": 2, ".config/": 2, ".local/": 3}[parts[0]])
			in := d.Path + "/" + strings.Join(parts[:min(deep, len(parts))], "")
			if len(out) == 0 || out[len(out)-1] != in {
				out = append(out, in)
			}
			return nil
		})
	}
	return out
}
