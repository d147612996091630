package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/track"
)

// Try says more about the layers that a policy with writes = "try" asks for. The zero value adds nothing.
type Try struct {
	All       bool // the caches of presets have layers, too
	Protected bool // the command may write protected files in a layer
}

// LayerState returns the state directory of zsbx, below which it keeps layers, by this process's environment.
// It is "" without HOME and XDG_STATE_HOME.
func LayerState() string {
	dir := callersHost().StateHome()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "zsbx")
}

// callersHost returns what this process's environment says.
func callersHost() *host.Host {
	h := host.Host{Env: os.Environ(), Home: os.Getenv("HOME")}
	if !filepath.IsAbs(h.Home) {
		h.Home = host.PasswdHome()
	}
	return &h
}

// layers says how the plan makes layers.
func (c *prepared) layers() mounts.Try {
	t := mounts.Try{All: c.o.Try.All, Protected: c.o.Try.Protected}
	state := LayerState()
	switch {
	case c.o.InPlace:
		t.None = "a command that replaces zsbx leaves nobody to close the layer"
	case state == "":
		t.None = "there is no place for it: set HOME or XDG_STATE_HOME to an absolute path"
	default:
		t.State = filepath.Join(c.host.Way(state).Path, layer.StoreDir)
	}
	return t
}

// makeLayer makes the layer that the plan needs. One that was made for an earlier plan is removed.
func (c *Command) makeLayer() error {
	if err := c.dropLayer(); err != nil {
		return err
	}
	trees := treesOf(c.plan)
	if trees == nil {
		return nil
	}
	var err error
	c.layer, err = layer.Make(LayerState(), layer.Record{
		Session: c.s.ID(),
		Name:    c.o.Name,
		Command: c.o.Args,
		Dir:     c.resolved.Dir,
		Began:   time.Now(),
		Trees:   trees,

		Protected: c.plan.Opened(),
		Denied:    c.plan.Denied(),
	})
	if err != nil {
		return fmt.Errorf("making a layer for what the command writes: %w", err)
	}
	c.plan.UseLayer(c.layer.Dir)
	return nil
}

// treesOf returns the trees of a plan that have layers.
func treesOf(plan *enforce.Plan) (trees []layer.Tree) {
	for _, o := range plan.Layered() {
		trees = append(trees, layer.Tree{Path: o.Path, Dev: o.ID.Dev, Ino: o.ID.Ino})
	}
	return trees
}

// tryLayers makes the layers of the plan, and removes them. If the kernel refuses them, it plans without them.
func (c *prepared) tryLayers() error {
	trees := treesOf(c.plan)
	if trees == nil {
		return nil
	}
	made, err := layer.Make(LayerState(), layer.Record{Session: uuid.NewString(), Began: time.Now(), Trees: trees})
	if err != nil {
		return fmt.Errorf("making a layer, to try it: %w", err)
	}
	c.plan.UseLayer(made.Dir)
	caps := c.plan.TryLayers()
	return errors.Join(made.Remove(), c.replan(caps))
}

// dropLayer removes the layer of a command that has not run.
func (c *Command) dropLayer() error {
	if c.layer == nil {
		return nil
	}
	err := c.layer.Remove()
	c.layer = nil
	return err
}

// endLayer freezes the layer, once nothing is left of the command that could write to it, and removes
// it if nothing was written. The layer of a session that goes on, or of which that is not certain, is
// left as it is: Settle freezes it later.
func (c *Command) endLayer(r *Result) error {
	if c.layer == nil {
		return nil
	}
	r.Layer = c.layer
	if !r.Report.Done() {
		return nil
	}
	err := c.layer.Freeze()
	if err == nil {
		r.Layer, err = unlessEmpty(c.layer)
	}
	if err != nil {
		return &Error{Code: CodeSession, Err: fmt.Errorf("the layer of what the command wrote: %w", err)}
	}
	return nil
}

// unlessEmpty returns a layer that has changes. Another one is removed.
func unlessEmpty(l *layer.Layer) (*layer.Layer, error) {
	changes, err := l.Changes()
	if err != nil || len(changes) > 0 {
		return l, err
	}
	return nil, l.Remove()
}

// Settle makes a layer ready to be reviewed and applied. A layer whose zsbx was killed, or that left its
// session running, has to be frozen first. It is an error if the session may still run.
func Settle(l *layer.Layer) error {
	if l.Damage != nil {
		return &Error{Code: CodeSession, Hint: "zsbx try discard " + l.Session, Err: l.Damage}
	}
	if l.Frozen() {
		return nil
	}
	if err := Over(l); err != nil {
		return err
	}
	if err := l.Freeze(); err != nil {
		return &Error{Code: CodeSession, Err: err}
	}
	return nil
}

// Over returns an error if the session of a layer may still run, and write to it.
func Over(l *layer.Layer) error {
	hint := "zsbx reap " + l.Session
	life, err := lifeOf(l.Session)
	switch {
	case err != nil:
		return &Error{Code: CodeSession, Err: err}
	case life == track.Lost:
		err = fmt.Errorf("session %s: it is not certain that nothing of it is left, which could write to its layer",
			l.Session)
		return &Error{Code: CodeSession, Hint: hint, Err: err}
	case life != track.Ended:
		err = fmt.Errorf("session %s still runs (%s), and may write to its layer", l.Session, life)
		return &Error{Code: CodeSession, Hint: hint, Err: err}
	}
	return nil
}

// freezeLayerOf freezes the layer of a session that was ended, if it has one.
func freezeLayerOf(session string) error {
	all, err := layer.All(LayerState())
	for _, l := range all {
		if l.Session == session && !l.Frozen() {
			return l.Freeze()
		}
	}
	return err
}

// Lives returns the states of the sessions in the store.
func Lives() (map[string]track.Life, error) {
	st, err := track.OpenStore()
	if err != nil {
		return nil, err
	}
	all, orphans, err := st.Survey()
	lives := make(map[string]track.Life)
	for _, i := range append(all, orphans...) {
		lives[i.ID] = i.Life
	}
	return lives, err
}

// lifeOf returns the state of a session. A session that is not in the store has ended: only one of which
// nothing is left is removed from it. If more than ErrNotFound is wrong, it may be in what can't be read.
func lifeOf(id string) (track.Life, error) {
	st, err := track.OpenStore()
	if err != nil {
		return "", err
	}
	i, err := st.Get(id)
	if err == nil {
		err = i.Err
	}
	var several interface{ Unwrap() []error }
	if errors.Is(err, track.ErrNotFound) && !(errors.As(err, &several) && len(several.Unwrap()) > 1) {
		return track.Ended, nil
	}
	return i.Life, err
}
