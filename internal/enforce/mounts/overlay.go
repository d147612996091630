package mounts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Overlay is a writable tree of which the command sees the files, while what it writes goes to a
// layer: an overlay file system is mounted on the tree.
type Overlay struct {
	Path string
	ID   host.FileID // of the directory, which it must be when mounted
	Dir  string      // has upper, work and lower; set before Steps
}

// maxLayers limits the trees with layers. Each takes a descriptor until all is mounted, in addition to
// those of maxWritable.
const maxLayers = 100

// Try says how a namespace makes layers. State or None must be set if the policy has writes = "try".
type Try struct {
	All       bool   // caches of presets have layers, too
	Protected bool   // the command may write protected files in a layer
	State     string // the directory that layers are made in
	None      string // why there can be no layers, or ""
}

// Overlays returns the writable trees that have layers if the policy asks for them, or why that
// can't be. The baseline's directories have none, nor has the temporary one: what is in it goes when
// the session ends. Caches of presets and of the project have none either, unless All is set.
func (t *Try) Overlays(r *resolve.Resolved, writable []string, table func() Table) (out []Overlay, why string) {
	switch {
	case !r.Tries():
		return nil, ""
	case t.None != "":
		return nil, t.None
	case writable == nil:
		return nil, "all of / is writable, and the layer would be in it: allow only the directories to write in"
	}
	for _, w := range writable {
		at, wanted := t.wants(r, w)
		if !wanted {
			continue
		}
		if why := t.refuses(w, at, writable, table); why != "" {
			return nil, why
		}
		out = append(out, Overlay{Path: w, ID: at.ID})
	}
	if n := len(out); n > maxLayers {
		const why = "%d directories would have layers, more than %d: allow a directory around them"
		return nil, fmt.Sprintf(why, n, maxLayers)
	}
	return out, ""
}

// wants returns the rule that makes a tree writable, and whether any that does asks for a layer.
func (t *Try) wants(r *resolve.Resolved, tree string) (at *resolve.Path, wanted bool) {
	for i := range r.Paths {
		p := &r.Paths[i]
		if p.Access&policy.Write == 0 || !host.Within(p.Path, tree) || !p.Mode.IsDir() && !p.Mode.IsRegular() {
			continue
		}
		if p.Path == tree {
			at = p
		}
		temporary := r.TempDir != "" && host.Within(p.Path, r.TempDir)
		wanted = wanted || !ofBaseline(p) && !temporary && (t.All || !p.Cache())
	}
	return at, wanted && at != nil
}

// refuses returns why a tree can't have a layer, or "". What only the kernel knows is found out at the
// start.
func (t *Try) refuses(tree string, at *resolve.Path, writable []string, table func() Table) string {
	if !at.Mode.IsDir() {
		return tree + " is a file, and only a directory can have a layer: allow its directory"
	}
	if host.Within(t.State, tree) || host.Within(tree, t.State) {
		return fmt.Sprintf("the layer of %s would be in %s, and the two can't overlap: "+
			"allow less of it, or set XDG_STATE_HOME to a directory elsewhere", tree, t.State)
	}
	mounts := table()
	if mounts.Unread != nil {
		return mounts.Unread.Error()
	}
	for _, m := range mounts.Mounts {
		if m.Point != tree && host.Within(m.Point, tree) {
			return fmt.Sprintf("%s is a file system that is mounted in %s, and a layer has only one: "+
				"unmount it, or allow only directories without another file system", m.Point, tree)
		}
	}
	if other := mounts.again(tree, writable); other != "" {
		return fmt.Sprintf("%s has the files of %s, too, through another mount, and would change beside its layer: "+
			"allow only one of the two", other, tree)
	}
	return ""
}

// layered reports whether a path is in a tree that has a layer.
func layered(overlays []Overlay, p string) bool { return overlayOf(overlays, p) >= 0 }

// overlayOf returns the index of the overlay that a path is in, or -1.
func overlayOf(overlays []Overlay, p string) int {
	return slices.IndexFunc(overlays, func(o Overlay) bool { return host.Within(p, o.Path) })
}

// Layered reports whether the command sees a path in a tree that has a layer.
func (mp *Plan) Layered(p string) bool {
	return mp != nil && layered(mp.Overlays, p) && (mp.Temp.Path == "" || !host.Within(p, mp.Temp.Path))
}

// temporary returns the session's temporary directory if it is in a tree that has a layer.
func temporary(r *resolve.Resolved, overlays []Overlay) (temp Back) {
	for i := range r.Paths {
		p := &r.Paths[i]
		if p.Path == r.TempDir && layered(overlays, p.Path) {
			temp = Back{Path: p.Path, Mode: p.Mode, ID: p.ID}
		}
	}
	return temp
}

// unprotected leaves out the protected files that a command may write in a layer.
func (t *Try) unprotected(all []Mount, overlays []Overlay) []Mount {
	if !t.Protected {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(m Mount) bool {
		return m.Users && layered(overlays, m.Path)
	})
}

// overlaysText names the trees that have layers, for people.
func (mp *Plan) overlaysText() string {
	var names []string
	for _, o := range mp.Overlays {
		names = append(names, o.Path)
	}
	return strings.Join(names, ", ")
}
