package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/layer/review"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/policy"
)

// exitHeld is the exit status with --apply clean of a command that ended with 0, if its layer was kept:
// EX_TEMPFAIL of sysexits(3).
const exitHeld = 75

// afterTry tells of what a command wrote to its layer, and asks or decides what becomes of it. err is
// what the run ends with otherwise.
func (o *runFlags) afterTry(a *app, command *supervise.Command, res *supervise.Result, err error) error {
	l := res.Layer
	if l == nil {
		return err
	}
	if !l.Frozen() {
		a.say.warn("what the command writes is in the layer of session %s, which has not ended", l.Session)
		a.say.hint("zsbx try show %s", l.Session[:shortest])
		return err
	}
	r, failed := a.review(l)
	if failed != nil {
		a.hintLayer(l)
		return errors.Join(err, failed)
	}
	defer r.close()
	if a.say.json {
		failed = writeJSON(a.say.w, tried{l.Session, r.JSON()}, "")
	} else {
		_, failed = io.WriteString(a.say.w, "zsbx: "+r.Summary())
	}
	if failed == nil {
		failed = o.settle(a, command, r, res.ExitCode() == exitOK)
	} else {
		a.hintLayer(l)
	}
	return joinTry(err, failed)
}

// settle applies a layer, asks about it or keeps it, as --apply says. succeeded says that the command ended
// with 0.
func (o *runFlags) settle(a *app, command *supervise.Command, r *reviewed, succeeded bool) error {
	asks := o.apply == applyAsk && !a.say.json && isTerminal(os.Stdin) && isTerminal(a.stderr)
	clean := o.apply == applyClean && succeeded
	switch {
	case asks:
		return a.ask(command, r)
	case clean && r.Clean():
		return a.applyClean(r.l)
	}
	a.hintLayer(r.l)
	if clean {
		return status(exitHeld)
	}
	return nil
}

// applyClean applies a layer of which nothing needs a look, and then throws it away: a script does not take
// it back.
func (a *app) applyClean(l *layer.Layer) error {
	res, err := a.applyOnly(l, apply.Options{})
	if err != nil {
		a.hintLayer(l)
	}
	if len(res.Conflicts)+len(res.Refused) > 0 { // only now
		return status(exitHeld)
	}
	if err != nil {
		return err
	}
	return drop(l)
}

// joinTry adds what followed the end of a command to what the run ends with.
func joinTry(err, after error) error {
	if after == nil {
		return err
	}
	first, is := leaves(err)[0].(exit)
	if !is || first.Status != exitOK {
		return errors.Join(err, after)
	}
	out := outcome(leaves(after)[0])
	if out.Status == exitFailed {
		out.Status = exitAfter
	}
	return errors.Join(exit(out), err, after)
}

// tried is what --json prints of a layer on standard error.
type tried struct {
	ID string `json:"id"`
	review.JSON
}

// hintLayer prints what to type about a layer that is kept.
func (a *app) hintLayer(l *layer.Layer) {
	if a.say.json { // which has the id
		return
	}
	a.say.hint("zsbx try show %s\nzsbx try apply %[1]s\nzsbx try discard %[1]s", l.Session[:shortest])
}

// reviewed is a layer, with what it would change.
type reviewed struct {
	*review.Review
	l     *layer.Layer
	close func()
}

// review reads what a layer would change. The caller closes it.
func (a *app) review(l *layer.Layer) (*reviewed, error) {
	changes, err := l.Changes()
	if err != nil {
		return nil, coded(supervise.CodeSession, err)
	}
	dir, _ := host.Absolute(".") // only for short names
	r, end, err := review.Of(l, changes, review.Options{Dir: path.Clean(dir), Protected: l.Protected, Denied: l.Denied})
	return &reviewed{r, l, end}, coded(supervise.CodeSession, err)
}

// spot is a path in one of a layer's trees.
type spot struct {
	tree int
	rel  string // "." is the tree itself
}

// wholeTrees returns the trees of a layer.
func wholeTrees(l *layer.Layer) (all []spot) {
	for i := range l.Trees {
		all = append(all, spot{i, "."})
	}
	return all
}

// differences prints the difference at places, and below them.
func (r *reviewed) differences(w io.Writer, at []spot) error {
	for _, p := range at {
		if err := r.Diff(w, p.tree, p.rel); err != nil {
			return err
		}
	}
	return nil
}

// ask asks on the terminal what is to become of a layer. A signal ends the question: then it is kept. One ends
// what is shown, too; while it is applied, a signal ends this process.
func (a *app) ask(command *supervise.Command, r *reviewed) error {
	signals := make(chan os.Signal, 1)
	asked := command.TakeSignals(signals)
	defer asked()
	d := &dialogue{
		ask: func(text string) (string, error) {
			answer, err := terminal.AskUntil(signals, text)
			if err != nil {
				fmt.Fprintln(a.stderr) // what comes next is not behind the question
			}
			return answer, err
		},
		parts: partsOf(r),
		show: func(changes []int) error {
			at := wholeTrees(r.l)
			if changes != nil {
				at = r.places(changes)
			}
			err := r.differences(&untilSignal{a.stderr, signals}, at)
			if errors.Is(err, terminal.ErrInterrupted) {
				return nil // the question comes again
			}
			return err
		},
		apply: func(changes []int) error {
			asked()
			if changes == nil {
				return a.apply(r.l, apply.Options{})
			}
			return a.apply(r.l, apply.Options{Only: r.only(changes)})
		},
		keep: func() error {
			a.hintLayer(r.l)
			return nil
		},
		discard: func() error {
			err := drop(r.l)
			if err == nil {
				a.say.line("try", "36", "thrown away")
			}
			return err
		},
	}
	return d.decide()
}

// untilSignal writes until a signal is received.
type untilSignal struct {
	w       io.Writer
	signals <-chan os.Signal
}

func (u *untilSignal) Write(b []byte) (int, error) {
	select {
	case <-u.signals:
		return 0, terminal.ErrInterrupted
	default:
		return u.w.Write(b)
	}
}

// drop throws a layer away. What was applied of it stays, and can't be taken back any more.
func drop(l *layer.Layer) error {
	if l.Damage != nil {
		return l.Remove()
	}
	if pending, _ := apply.Pending(l); pending { // Drop says what is wrong with it
		id := l.Session[:shortest]
		return refusal(supervise.CodeSession, "zsbx try apply "+id+"\nzsbx try apply "+id+" --undo",
			"an apply of layer %s has not ended", l.Session)
	}
	if err := apply.Drop(l); err != nil {
		return err
	}
	return l.Remove()
}

// only reports whether a change is one of these.
func (r *reviewed) only(changes []int) func(*layer.Change) bool {
	chosen := make(map[spot]bool)
	for _, i := range changes {
		chosen[spot{r.Changes[i].Tree, r.Changes[i].Path}] = true
	}
	return func(c *layer.Change) bool { return chosen[spot{c.Tree, c.Path}] }
}

// places returns where changes are, without those that are below others.
func (r *reviewed) places(changes []int) (all []spot) {
	for _, i := range changes {
		c := &r.Changes[i]
		n := len(all)
		if n > 0 && all[n-1].tree == c.Tree && strings.HasPrefix(c.Path, all[n-1].rel+"/") {
			continue
		}
		all = append(all, spot{c.Tree, c.Path})
	}
	return all
}

// partsOf returns what can be chosen: each change that needs a look, and the others by the first name in
// their tree.
func partsOf(r *reviewed) (parts []part) {
	at := make(map[string]int)
	for i := range r.Changes {
		c := &r.Changes[i]
		top := r.l.Trees[c.Tree].Path
		if looks := r.Looks(i); len(looks) > 0 {
			name := fmt.Sprintf("%s %s: %s", c.Op, path.Join(top, c.Path), looks[0].Why)
			parts = append(parts, part{name, []int{i}})
			continue
		}
		first, _, _ := strings.Cut(c.Path, "/")
		name := path.Join(top, first)
		n, known := at[name]
		if !known {
			n = len(parts)
			at[name] = n
			parts = append(parts, part{string(c.Op) + " " + name, nil})
		}
		parts[n].changes = append(parts[n].changes, i)
	}
	for i := range parts {
		if more := len(parts[i].changes) - 1; more > 0 {
			parts[i].name += fmt.Sprintf(" and %d more below it", more)
		}
	}
	return parts
}

// apply applies a layer, says what was left, and what to type if that is nothing.
func (a *app) apply(l *layer.Layer, o apply.Options) error {
	res, err := a.applyOnly(l, o)
	if err != nil || res.Left > 0 || a.say.json {
		return err
	}
	if res.Applied > 0 {
		a.say.hint("zsbx try apply %s --undo", l.Session[:shortest])
	}
	a.say.hint("zsbx try discard %s", l.Session[:shortest])
	return nil
}

// applyOnly applies a layer, and says what was left.
func (a *app) applyOnly(l *layer.Layer, o apply.Options) (apply.Result, error) {
	if isTerminal(a.stderr) {
		p := &progress{a: a, began: time.Now()}
		o.Progress = p.step
		defer p.end()
	}
	res, err := apply.Apply(l, o)
	if err == nil {
		return res, a.tellApplied(l, &res)
	}
	if wrong, is := errors.AsType[apply.Mistakes](err); is {
		return res, mistaken(l, wrong)
	}
	hint := "zsbx try apply " + l.Session[:shortest]
	if errors.Is(err, layer.ErrGone) {
		hint = "zsbx try show " + l.Session[:shortest] + " --tar FILE"
	}
	failed := &policy.Error{Code: supervise.CodeSession, Hint: hint, Err: err}
	if res.Left < 0 {
		return res, failed
	}
	return res, errors.Join(failed, a.tellApplied(l, &res))
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
func (a *app) tellApplied(l *layer.Layer, res *apply.Result) error {
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
	if len(res.Conflicts) > 0 {
		first := shell.Quote(name(res.Conflicts[0]))
		a.say.hint("zsbx try apply %s --theirs %s\nzsbx try apply %[1]s --ours %[2]s", l.Session[:shortest], first)
	}
	return notAll(out.Not)
}

func notAll(not []jsonNotApplied) error {
	if len(not) > 0 {
		return status(exitNo)
	}
	return nil
}
