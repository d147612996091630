package enforce

import (
	"path/filepath"
	"strconv"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/glob"
)

// Layered returns the trees of which the command writes to a layer, in the order of the layer's
// directories.
func (p *Plan) Layered() []mounts.Overlay {
	if p.Mounts == nil {
		return nil
	}
	return p.Mounts.Overlays
}

// Opened returns the paths in layers that the command may write although programs outside run or trust
// them: protected files, if these may be written there, and what is only compared otherwise, such as files
// that Git's settings name.
func (p *Plan) Opened() []string { return p.opened }

// Denied returns the patterns (package glob) of what the command may make in layers under a denied name.
func (p *Plan) Denied() (patterns []string) {
	for _, d := range p.audit.Later {
		pattern := d.Pattern
		if !d.Glob {
			pattern = glob.QuoteMeta(pattern)
		}
		patterns = append(patterns, pattern)
	}
	return patterns
}

// openedBy returns these paths of a set.
func (p *Plan) openedBy(try *mounts.Try, set *protect.Set) (paths []string) {
	for _, m := range set.Mounts {
		if try.Protected && m.Kind == mounts.Protect && p.Mounts.Layered(m.Path) {
			paths = append(paths, m.Path)
		}
	}
	for _, c := range set.Paths {
		if c.Acts() && p.Mounts.Layered(c.Path) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// UseLayer says where the layer is that was made for Layered. dir is canonical. Confine needs it.
func (p *Plan) UseLayer(dir string) {
	trees := p.Layered()
	for i := range trees {
		trees[i].Dir = filepath.Join(dir, strconv.Itoa(i))
	}
}
