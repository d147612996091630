package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
)

func newTryApply(a *app) *cobra.Command {
	var undo bool
	var theirs, ours []string
	c := commandBelow("apply", func(args []string) error { return a.applyTry(args, theirs, ours, undo) })
	c.ValidArgsFunction = completeLayer
	fs := c.Flags()
	add := func(to *[]string) func(string) error {
		return func(path string) error { *to = append(*to, path); return nil }
	}
	a.each(fs, "theirs", "of a conflict at `PATH`, take what the command wrote", add(&theirs))
	a.each(fs, "ours", "of a conflict at `PATH`, leave what is there, and drop what the command wrote", add(&ours))
	for _, name := range []string{"theirs", "ours"} {
		_ = c.RegisterFlagCompletionFunc(name, completeConflict) // only an unknown flag is an error
	}
	fs.BoolVar(&undo, "undo", false, "take back all that was applied, also by an apply that did not end")
	fs.BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

// applyTry applies the layer, and the paths in it, that args name, or takes back what was applied.
func (a *app) applyTry(args, theirs, ours []string, undo bool) error {
	a.needLayer(args)
	a.failIf(undo && len(args) > 1, "--undo takes all back: it can't be used with paths")
	a.failIf(undo && theirs != nil, "--undo and --theirs can't be used together")
	a.failIf(undo && ours != nil, "--undo and --ours can't be used together")
	if a.errs != nil {
		return errors.Join(a.errs...)
	}
	l, err := findLayer(args[0])
	if err != nil {
		return err
	}
	if undo {
		return a.undo(l)
	}
	if err := supervise.Settle(l); err != nil {
		return err
	}
	paths, err1 := inTrees(l, args[1:])
	theirs, err2 := inTrees(l, theirs)
	ours, err3 := inTrees(l, ours)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	return a.apply(l, apply.Options{Paths: paths, Theirs: theirs, Ours: ours})
}

// undo takes back what was applied of a layer.
func (a *app) undo(l *layer.Layer) error {
	stop := newStopper()
	defer stop.end()
	err := apply.Undo(l, apply.Options{Stopped: stop.stopped})
	pending, _ := apply.Pending(l) // the error says what is wrong with the journal
	if err != nil && pending {
		return stop.failed("undo", l, err)
	}
	if err != nil {
		return err
	}
	if a.say.json {
		return a.show(map[string]any{"id": l.Session, "undone": true}, nil)
	}
	a.say.line("try", "36", "taken back: what was there before is there again")
	return nil
}

// inTrees returns the absolute paths that words mean in a layer.
func inTrees(l *layer.Layer, words []string) (all []string, _ error) {
	var errs []error
	for _, word := range words {
		p, err := inTree(l, word)
		all = append(all, p)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// inTree returns the absolute path that a word means in a layer: from the working directory, or, if that is in none
// of the layer's trees, from the only tree.
func inTree(l *layer.Layer, word string) (string, error) {
	h, err := host.HostIn("")
	if err != nil {
		return "", err
	}
	p := filepath.Join(h.Dir, word)
	if filepath.IsAbs(word) {
		p = filepath.Clean(word)
	}
	real := filepath.Join(h.Way(filepath.Dir(p)).Path, filepath.Base(p))
	for _, p := range []string{p, real} {
		if slices.ContainsFunc(l.Trees, func(t layer.Tree) bool { return t.Path != "" && host.Within(p, t.Path) }) {
			return p, nil
		}
	}
	if len(l.Trees) == 1 && filepath.IsLocal(word) {
		return filepath.Join(l.Trees[0].Path, word), nil
	}
	return "", usageHint("zsbx try show "+l.Session[:shortest], "%s is not in a directory of this layer: %s",
		shell.Quote(word), quoteArgs(each(l.Trees, treePath)))
}

// apply applies a layer, says what was left, and what to type next.
func (a *app) apply(l *layer.Layer, o apply.Options) error {
	res, err := a.applyOnly(l, o)
	if err != nil || a.say.json {
		return err
	}
	if res.Left > 0 {
		a.hintLayer(l)
		return nil
	}
	if res.Applied > 0 {
		a.say.hint("zsbx try apply %s --undo", l.Session[:shortest])
	}
	a.say.hint("zsbx try discard %s", l.Session[:shortest])
	return nil
}

// applyOnly applies a layer, and says what was left.
func (a *app) applyOnly(l *layer.Layer, o apply.Options) (apply.Result, error) {
	p := &progress{a: a, began: time.Now()}
	if isTerminal(a.stderr) {
		o.Progress = p.step
	}
	stop := newStopper()
	defer stop.end()
	o.Stopped = stop.stopped
	res, err := apply.Apply(l, o)
	p.end()
	if err == nil {
		return res, a.tellApplied(l, o, &res)
	}
	if wrong, is := errors.AsType[apply.Mistakes](err); is {
		return res, mistaken(l, wrong)
	}
	failed := stop.failed("apply", l, err)
	if res.Left < 0 {
		return res, failed
	}
	return res, errors.Join(failed, a.tellApplied(l, o, &res))
}

// mistaken returns an error for each path of the command line that means nothing in a layer.
func mistaken(l *layer.Layer, all apply.Mistakes) error {
	var errs []error
	for _, m := range all {
		name := shell.Quote(m.Path)
		if m.Option != "" {
			name = "--" + m.Option + " " + name
		}
		errs = append(errs, usageHint("zsbx try show "+l.Session[:shortest], "%s: %s", name, m.Why))
	}
	return errors.Join(errs...)
}

// jsonApplied is what apply --json prints.
type jsonApplied struct {
	ID      string           `json:"id"`
	Applied int              `json:"applied"`
	Left    int              `json:"left"`
	Not     []jsonNotApplied `json:"not_applied"`
}

// jsonNotApplied is a change that was to be applied and was not.
type jsonNotApplied struct {
	Path string   `json:"path"`
	Op   layer.Op `json:"op"`
	Kind string   `json:"kind"` // conflict or refused
	Why  string   `json:"why"`
}

// tellApplied says what was applied, and what was not. The exit status is 1 if something that should have
// been was not.
func (a *app) tellApplied(l *layer.Layer, o apply.Options, res *apply.Result) error {
	name := func(c layer.Change) string { return filepath.Join(l.Trees[c.Tree].Path, c.Path) }
	out := jsonApplied{ID: l.Session, Applied: res.Applied, Left: res.Left}
	for _, c := range res.Conflicts {
		out.Not = append(out.Not, jsonNotApplied{name(c), c.Op, "conflict", c.Conflict})
	}
	for _, c := range res.Refused {
		out.Not = append(out.Not, jsonNotApplied{name(c), c.Op, "refused", c.Refused})
	}
	if a.say.json {
		return errors.Join(writeErr(writeJSON(a.stdout, out, "  ")), notAll(out.Not))
	}
	if len(out.Not)+res.Applied+res.Left == 0 {
		a.say.line("try", "36", "nothing is left to apply")
		return nil
	}
	a.say.line("try", "36", fmt.Sprintf("applied %s; %s left in the layer",
		count(res.Applied, "change", "changes"), strconv.Itoa(res.Left)))
	for i, n := range out.Not {
		if i == mostNamed {
			a.say.warn("%d more are not applied: zsbx try show %s", len(out.Not)-i, l.Session[:shortest])
			break
		}
		a.say.warn("not applied: %s: %s", shell.Quote(n.Path), n.Why)
	}
	a.hintConflict(l, o, res.Conflicts)
	return notAll(out.Not)
}

// hintConflict prints what to type to decide the first conflict. After an apply of a part, that applies nothing else.
func (a *app) hintConflict(l *layer.Layer, o apply.Options, conflicts []layer.Change) {
	for _, c := range conflicts {
		full := filepath.Join(l.Trees[c.Tree].Path, c.Path)
		name := shell.Quote(full)
		id := l.Session[:shortest]
		if o.Paths == nil && o.Only == nil {
			a.say.hint("zsbx try apply %s --theirs %s\nzsbx try apply %[1]s --ours %[2]s", id, name)
			return
		}
		dir := c.Type.IsDir() || c.Was != nil && c.Was.Mode.IsDir()
		whole := o.Only == nil && slices.ContainsFunc(o.Paths, func(p string) bool { return host.Within(full, p) })
		if !dir || whole { // else something below it would be applied that was not meant
			a.say.hint("zsbx try apply %s %s --theirs %[2]s\nzsbx try apply %[1]s %[2]s --ours %[2]s", id, name)
			return
		}
	}
}

func notAll(not []jsonNotApplied) error {
	if len(not) > 0 {
		return status(exitNo)
	}
	return nil
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
