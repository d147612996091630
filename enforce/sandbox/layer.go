package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/layer/review"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
)

// Try says more about the layer of a command whose policy has FS.Writes "try". The zero value adds
// nothing.
type Try struct {
	All       bool // the caches of presets have layers, too
	Protected bool // the command may write protected files in the layer
}

// Layer has what a command wrote under a policy with FS.Writes "try", as it was when it was made by
// Command.Wait or OpenLayer. Nothing of it is real until Apply. It stays on the disk, also for zsbx try,
// until Discard. The methods of the zero value, and of a layer whose session may still run, return errors.
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

// OpenLayer returns the layer of a session that has ended, as it is now: what was applied is no change any
// more. The session is its id, the beginning of that, or its name. It is an error if the session may still run.
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

// unread returns a layer without its changes.
func unread(l *layer.Layer) *Layer {
	out := &Layer{ID: l.Session, l: l}
	for _, t := range l.Trees {
		out.Trees = append(out.Trees, t.Path)
	}
	return out
}

// layerOf reads a layer that is frozen.
func layerOf(l *layer.Layer) (*Layer, error) {
	out := unread(l)
	r, err := reviewOf(l)
	if err != nil {
		return out, errorOf(err)
	}
	defer r.Close()
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

// Diff writes the difference between what is there and what would be there, of absolute paths and of what is
// below them; without paths all of it. It is an error if nothing would change at a path. What controls a
// terminal is escaped.
func (l *Layer) Diff(w io.Writer, paths ...string) error {
	settled, err := l.settled()
	if err != nil {
		return err
	}
	r, err := reviewOf(settled)
	if err != nil {
		return errorOf(err)
	}
	defer r.Close()
	all := len(paths) == 0
	if all {
		paths = l.Trees
	}
	var errs []error
	for _, p := range cleaned(paths) {
		part := r.Part(func(c *layer.Change) bool { return host.Within(r.Path(c), p) })
		if len(part.Changes) == 0 && !all {
			errs = append(errs, fmt.Errorf("%s: nothing would change there or below", shell.Quote(p)))
		}
		errs = append(errs, part.Diff(w))
	}
	return errorOf(errors.Join(errs...))
}

// cleaned returns paths as those of a layer are written; nil stays nil.
func cleaned(paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, path.Clean(p))
	}
	return out
}

// settled returns the layer of a session that has ended.
func (l *Layer) settled() (*layer.Layer, error) {
	if l.l == nil {
		return nil, errors.New("a layer comes from Command.Wait or OpenLayer")
	}
	return l.l, errorOf(supervise.Settle(l.l))
}

func reviewOf(l *layer.Layer) (*review.Review, error) {
	changes, err := l.Changes()
	if err != nil {
		return nil, err
	}
	h, err := host.HostIn("/") // all names are absolute
	if err != nil {
		return nil, err
	}
	return review.Of(l, changes, &h)
}

// LayerOptions say what Layer.Apply does. All paths are absolute, and mean what is below them, too. The zero
// value means all changes but conflicts.
type LayerOptions struct {
	Paths    []string              // only these and what is below them; nil is all
	Theirs   []string              // of conflicts there, take what the command wrote
	Ours     []string              // of conflicts there, leave what is there, and drop what the command wrote
	Progress func(done, total int) // called now and then; may be nil
}

// Apply makes changes real. What it returns was left in the layer: conflicts, and what is never applied.
// Each file is either the old or the new one at any moment. It is an error, and nothing is applied, if
// nothing would change at a path, or if a path of Theirs or Ours is no conflict. After another error, and if
// the program is killed meanwhile, Apply of OpenLayer goes on, and Undo goes back.
func (l *Layer) Apply(o LayerOptions) (left []LayerChange, _ error) {
	settled, err := l.settled()
	if err != nil {
		return nil, err
	}
	opts := apply.Options{Theirs: cleaned(o.Theirs), Ours: cleaned(o.Ours), Progress: o.Progress}
	if o.Paths != nil {
		opts.Paths = append([]string{}, cleaned(o.Paths)...) // if it is empty, it is still not nil
	}
	res, err := apply.Apply(settled, opts)
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

// Undo takes back what Apply did. It is possible until Discard. What has changed since stays, and the error
// names it.
func (l *Layer) Undo() error {
	settled, err := l.settled()
	if err == nil {
		err = errorOf(apply.Undo(settled, apply.Options{}))
	}
	return err
}

// Discard throws the layer away. What was applied stays. It is an error, and nothing is thrown away, if an
// Apply has not ended.
func (l *Layer) Discard() error {
	settled, err := l.settled()
	if err == nil {
		err = errorOf(apply.Drop(settled, false))
	}
	if err == nil {
		err = settled.Remove()
	}
	return err
}
