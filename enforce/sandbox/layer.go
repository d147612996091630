package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/layer/review"
	"github.com/zsbx/zsbx/internal/supervise"
)

// Try says more about the layer of a command whose policy has FS.Writes "try". The zero value adds
// nothing.
type Try struct {
	All       bool // the caches of presets have layers, too
	Protected bool // the command may write protected files in the layer
}

// Layer has what a command wrote under a policy with FS.Writes "try". Nothing of it is real until
// Apply. It stays on the disk, also for zsbx try, until Apply has left nothing, or Discard.
type Layer struct {
	ID      string   // of the session
	Trees   []string // the directories that the changes are in
	Changes []LayerChange
	Clean   bool // no change needs a look; true without changes

	l *layer.Layer
}

// LayerChange is one file, directory or link that Layer.Apply adds, changes or removes.
type LayerChange struct {
	Path string      // absolute
	Op   string      // "add", "change" or "remove"
	Mode fs.FileMode // of what is removed, as it was
	Size int64       // in bytes; of what is removed, as it was

	// Look says why somebody should look at it: programs outside run or trust it, it has changed
	// meanwhile, or it is never applied.
	Look []string
}

// OpenLayer returns the layer of a session that has ended. It is an error if the session may still run.
func OpenLayer(session string) (*Layer, error) {
	l, err := layer.Find(supervise.LayerState(), session)
	if err == nil {
		err = supervise.Settle(l)
	}
	if err != nil {
		return nil, errorOf(err)
	}
	return layerOf(l)
}

// layerOf reads a layer that is frozen.
func layerOf(l *layer.Layer) (*Layer, error) {
	out := &Layer{ID: l.Session, l: l}
	for _, t := range l.Trees {
		out.Trees = append(out.Trees, t.Path)
	}
	r, done, err := reviewOf(l)
	if err != nil {
		return out, errorOf(err)
	}
	defer done()
	out.Clean = r.Clean()
	for i := range r.Changes {
		out.Changes = append(out.Changes, out.changeOf(&r.Changes[i], r.Looks(i)))
	}
	return out, nil
}

func (l *Layer) changeOf(c *layer.Change, looks []review.Look) LayerChange {
	out := LayerChange{
		Path: path.Join(l.Trees[c.Tree], c.Path),
		Op:   string(c.Op),
		Mode: c.Type,
		Size: c.Size,
	}
	for _, look := range looks {
		out.Look = append(out.Look, look.Why)
	}
	return out
}

// Diff writes the difference between what is there and what would be there, of the paths and of what is
// below them; without paths all of it. What controls a terminal is escaped.
func (l *Layer) Diff(w io.Writer, paths ...string) error {
	r, done, err := reviewOf(l.l)
	if err != nil {
		return errorOf(err)
	}
	defer done()
	for i, t := range l.Trees {
		if paths == nil {
			err = errors.Join(err, r.Diff(w, i, "."))
		}
		for _, p := range paths {
			if rel, bad := filepath.Rel(t, p); bad == nil && filepath.IsLocal(rel) {
				err = errors.Join(err, r.Diff(w, i, rel))
			}
		}
	}
	return errorOf(err)
}

func reviewOf(l *layer.Layer) (*review.Review, func(), error) {
	changes, err := l.Changes()
	if err != nil {
		return nil, nil, err
	}
	return review.Of(l, changes, review.Options{Protected: l.Protected})
}

// LayerOptions say what Layer.Apply does. All paths are absolute.
type LayerOptions struct {
	Paths    []string              // only these and what is below them; nil is all
	Theirs   []string              // of conflicts there, take what the command wrote
	Ours     []string              // of conflicts there, leave what is there, and drop what the command wrote
	Progress func(done, total int) // called now and then; may be nil
}

// Apply makes changes real. What it returns was left in the layer: conflicts, and what is never applied.
// Each file is either the old or the new one at any moment. If the program is killed meanwhile, Apply of
// OpenLayer goes on.
func (l *Layer) Apply(o LayerOptions) (left []LayerChange, _ error) {
	res, err := apply.Apply(l.l, apply.Options{Paths: o.Paths, Theirs: o.Theirs, Ours: o.Ours, Progress: o.Progress})
	for i := range res.Conflicts {
		c := &res.Conflicts[i]
		left = append(left, l.changeOf(c, []review.Look{{Kind: review.Conflict, Why: c.Conflict}}))
	}
	for i := range res.Refused {
		c := &res.Refused[i]
		left = append(left, l.changeOf(c, []review.Look{{Kind: review.Refused, Why: c.Refused}}))
	}
	return left, errorOf(err)
}

// Undo takes back what Apply did. It is possible until Discard.
func (l *Layer) Undo() error { return errorOf(apply.Undo(l.l)) }

// Discard throws the layer away. What was applied stays.
func (l *Layer) Discard() error { return errorOf(errors.Join(apply.Drop(l.l), l.l.Remove())) }
