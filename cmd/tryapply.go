package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/internal/units"
)

type tryApply struct {
	*mistakes

	undo         bool
	theirs, ours []string // as typed
}

func newTryApply(a *app) *cobra.Command {
	o := &tryApply{mistakes: &a.mistakes}
	c := commandBelow("apply", func(args []string) error { return o.run(a, args) })
	c.ValidArgsFunction = completeLayer
	fs := c.Flags()
	add := func(to *[]string) func(string) error {
		return func(path string) error { *to = append(*to, path); return nil }
	}
	o.each(fs, "theirs", "of a conflict at `PATH`, take what the command wrote", add(&o.theirs))
	o.each(fs, "ours", "of a conflict at `PATH`, leave what is there, and drop what the command wrote", add(&o.ours))
	for _, name := range []string{"theirs", "ours"} {
		_ = c.RegisterFlagCompletionFunc(name, completeConflict) // only an unknown flag is an error
	}
	fs.BoolVar(&o.undo, "undo", false, "take back all that was applied, also by an apply that did not end")
	fs.BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

func (o *tryApply) run(a *app, args []string) error {
	if len(args) == 0 {
		o.errs = append(o.errs, usageHint("zsbx try list", "no layer given"))
	}
	o.failIf(o.undo && len(args) > 1, "--undo takes all back: it can't be used with paths")
	o.failIf(o.undo && o.theirs != nil, "--undo and --theirs can't be used together")
	o.failIf(o.undo && o.ours != nil, "--undo and --ours can't be used together")
	if o.errs != nil {
		return errors.Join(o.errs...)
	}
	l, err := findLayer(args[0])
	if err != nil {
		return err
	}
	if o.undo {
		return a.undo(l)
	}
	if err := supervise.Settle(l); err != nil {
		return err
	}
	var errs []error
	paths := func(words []string) (out []string) {
		for _, word := range words {
			p, err := inTrees(l, word)
			errs = append(errs, err)
			if err == nil {
				out = append(out, filepath.Join(l.Trees[p.tree].Path, p.rel))
			}
		}
		return out
	}
	opts := apply.Options{Paths: paths(args[1:]), Theirs: paths(o.theirs), Ours: paths(o.ours)}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return a.apply(l, opts)
}

// undo takes back what was applied of a layer.
func (a *app) undo(l *layer.Layer) error {
	if err := apply.Undo(l, apply.Options{}); err != nil {
		return err
	}
	if a.say.json {
		return a.show(map[string]any{"id": l.Session, "undone": true}, nil)
	}
	a.say.line("try", "36", "taken back: what was there before is there again")
	return nil
}

// inTrees returns what a word means in a layer: a path from the working directory, or, if that is in none
// of the layer's trees, from the only tree.
func inTrees(l *layer.Layer, word string) (spot, error) {
	h, err := host.HostIn("")
	if err != nil {
		return spot{}, err
	}
	path := filepath.Join(h.Dir, word)
	if filepath.IsAbs(word) {
		path = filepath.Clean(word)
	}
	real := filepath.Join(h.Way(filepath.Dir(path)).Path, filepath.Base(path))
	for _, path := range []string{path, real} {
		for i, t := range l.Trees {
			rel, err := filepath.Rel(t.Path, path)
			if err == nil && filepath.IsLocal(rel) {
				return spot{i, rel}, nil
			}
		}
	}
	if len(l.Trees) == 1 && filepath.IsLocal(word) {
		return spot{0, filepath.Clean(word)}, nil
	}
	return spot{}, usageHint("zsbx try show "+l.Session[:shortest], "%s is not in a directory of this layer: %s",
		shell.Quote(word), quoteArgs(each(l.Trees, treePath)))
}

// progress shows on a terminal how far an apply is, after a second.
type progress struct {
	a     *app
	began time.Time
	shown time.Time
}

func (p *progress) step(done, total int) {
	const patience, pause = time.Second, 100 * time.Millisecond
	now := time.Now()
	if now.Sub(p.began) < patience || now.Sub(p.shown) < pause {
		return
	}
	p.shown = now
	fmt.Fprintf(p.a.stderr, "\rzsbx: applying %d changes: %d%%", total, done*100/total)
}

// end wipes the line.
func (p *progress) end() {
	if !p.shown.IsZero() {
		fmt.Fprint(p.a.stderr, "\r\x1b[K")
	}
}

type tryDiscard struct {
	*mistakes

	older time.Duration
}

func newTryDiscard(a *app) *cobra.Command {
	o := &tryDiscard{mistakes: &a.mistakes, older: -1}
	c := commandBelow("discard", func(args []string) error { return o.run(a, args) })
	c.ValidArgsFunction = completeLayers
	fs := c.Flags()
	o.flag(fs, "older", "string", "", "throw away all layers that are older than the time `D`, such as 7d or 12h",
		func(s string) (err error) {
			o.older, err = parseDays(s)
			return err
		})
	fs.BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

// parseDays reads a time that may be in days.
func parseDays(s string) (d time.Duration, err error) {
	const mostDays = 100_000
	if days, is := strings.CutSuffix(s, "d"); is {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 64)
		d = time.Duration(min(n, mostDays)) * 24 * time.Hour
	} else {
		d, err = units.ParseTime(s)
	}
	if err != nil {
		return 0, errors.New("a time is a number of days such as 7d, or a time such as 12h or 90m")
	}
	return d, nil
}

func (o *tryDiscard) run(a *app, refs []string) error {
	older := o.older >= 0
	o.failIf(older && len(refs) > 0, "--older and layers can't be used together")
	if !older && len(refs) == 0 {
		o.errs = append(o.errs, usageHint("zsbx try list", "no layer given"))
	}
	if o.errs != nil {
		return errors.Join(o.errs...)
	}
	all, err := findLayers(refs)
	if older {
		all, err = olderLayers(o.older)
	}
	errs := []error{err}
	t := &table{}
	var gone []string
	for _, l := range all {
		if err := discard(l); err != nil {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, l.Session)
		t.line("%s  thrown away", l.Session)
	}
	return errors.Join(append(errs, a.show(map[string]any{"discarded": gone}, t))...)
}

// olderLayers returns the layers that are older than d and whose sessions have ended.
func olderLayers(d time.Duration) (old []*layer.Layer, _ error) {
	all, err := layer.All(supervise.LayerState())
	lives, unread := supervise.Lives()
	for _, l := range all {
		if time.Since(l.Began) > d && (lives[l.Session] == "" || lives[l.Session] == track.Ended) {
			old = append(old, l)
		}
	}
	return old, errors.Join(err, unread)
}

// discard throws a layer away, once its session can't write to it any more.
func discard(l *layer.Layer) error {
	if err := supervise.Over(l); err != nil {
		return err
	}
	return drop(l)
}
