package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/layer/review"
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
	succeeded := res.ExitCode() == exitOK
	if !l.Frozen() {
		a.say.warn("what the command writes is in the layer of session %s, which has not ended", l.Session)
		a.say.hint("zsbx try show %s", l.Session[:shortest])
		if o.apply == applyClean && succeeded {
			return joinTry(err, status(exitHeld))
		}
		return err
	}
	r, failed := a.review(l)
	if failed != nil {
		a.hintLayer(l)
		return errors.Join(err, failed)
	}
	defer r.Close()
	if a.say.json {
		failed = writeJSON(a.say.w, tried{l.Session, r.JSON()}, "")
	} else {
		_, failed = io.WriteString(a.say.w, "zsbx: "+r.Summary())
	}
	if failed == nil {
		failed = o.settle(a, command, r, succeeded)
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
		return a.applyClean(command, r.l)
	}
	a.hintLayer(r.l)
	if clean {
		return status(exitHeld)
	}
	return nil
}

// applyClean applies a layer of which nothing needs a look, and then throws it away: a script does not take
// it back.
func (a *app) applyClean(command *supervise.Command, l *layer.Layer) error {
	command.TakeSignals(make(chan os.Signal, 1))() // they are for the apply
	res, err := a.applyOnly(l, apply.Options{})
	if _, failed := errors.AsType[*policy.Error](err); failed { // or a signal has stopped it
		return err
	}
	if err != nil {
		a.hintLayer(l)
	}
	if len(res.Conflicts)+len(res.Refused) > 0 || res.Left > 0 { // only now
		return status(exitHeld)
	}
	if err != nil {
		return err
	}
	return drop(l, false)
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
	l *layer.Layer
}

// review reads what a layer would change. The caller closes it.
func (a *app) review(l *layer.Layer) (*reviewed, error) {
	changes, err := l.Changes()
	if err != nil {
		return nil, coded(supervise.CodeSession, err)
	}
	h, err := host.ThisHost()
	if err != nil { // without a working directory no names are short
		h, err = host.HostIn("/")
	}
	if err != nil {
		return nil, coded(supervise.CodeSession, err)
	}
	r, err := review.Of(l, changes, &h)
	return &reviewed{r, l}, coded(supervise.CodeSession, err)
}

// ask asks on the terminal what is to become of a layer. A signal ends the question: then the layer is kept. One ends
// what is shown, too. When the terminal goes, its signal may come after the question has ended: it does nothing.
func (a *app) ask(command *supervise.Command, r *reviewed) error {
	signals := make(chan os.Signal, 1)
	asked := command.TakeSignals(signals)
	d := &dialogue{
		ask: func(text string) (string, error) {
			answer, err := terminal.AskUntil(signals, text)
			if err != nil {
				fmt.Fprintln(a.stderr) // what comes next is not behind the question
				return "", errNoAnswer
			}
			return answer, nil
		},
		show: func(changes []int) error {
			shown := r.Review
			if changes != nil {
				shown = r.Part(r.only(changes))
			}
			err := shown.Diff(&untilSignal{a.stderr, signals})
			if errors.Is(err, terminal.ErrInterrupted) {
				return nil // the question comes again
			}
			return err
		},
		parts: partsOf(r),
	}
	answer, changes, err := d.decide()
	switch answer {
	case applyAnswer:
		asked()
		var o apply.Options
		if changes != nil {
			o.Only = r.only(changes)
		}
		return a.apply(r.l, o)
	case discardAnswer:
		asked()
		err := drop(r.l, false)
		if err == nil {
			a.say.line("try", "36", "thrown away")
		}
		return err
	}
	a.hintLayer(r.l)
	if errors.Is(err, errNoAnswer) {
		return nil
	}
	return err
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

// only reports whether a change is one of those with these indexes.
func (r *reviewed) only(changes []int) func(*layer.Change) bool {
	chosen := make(map[string]bool)
	for _, i := range changes {
		chosen[r.Path(&r.Changes[i])] = true
	}
	return func(c *layer.Change) bool { return chosen[r.Path(c)] }
}

// partsOf returns what can be chosen: each change that needs a look, and the others by the first name in
// their tree.
func partsOf(r *reviewed) (parts []part) {
	at := make(map[string]int)
	for i := range r.Changes {
		c := &r.Changes[i]
		if looks := r.Looks(i); len(looks) > 0 {
			name := fmt.Sprintf("%s %s: %s", c.Op, r.Shown(c), looks[0].Why)
			parts = append(parts, part{name, []int{i}})
			continue
		}
		first, _, _ := strings.Cut(c.Path, "/")
		dir := r.DirName(c.Tree, first)
		n, known := at[dir]
		if !known {
			n = len(parts)
			at[dir] = n
			parts = append(parts, part{})
		}
		parts[n].changes = append(parts[n].changes, i)
	}
	for dir, n := range at {
		parts[n].name = r.partName(dir, parts[n].changes)
	}
	return parts
}

// partName names the changes at a directory and below it: the only one, or how many of each kind.
func (r *reviewed) partName(dir string, changes []int) string {
	first := &r.Changes[changes[0]]
	if len(changes) == 1 {
		return fmt.Sprintf("%s %s", first.Op, r.Shown(first))
	}
	number := make(map[layer.Op]int)
	for _, i := range changes {
		number[r.Changes[i].Op]++
	}
	var counts []string
	for _, k := range []struct {
		op   layer.Op
		verb string
	}{{layer.Add, "added"}, {layer.Modify, "changed"}, {layer.Remove, "removed"}} {
		if number[k.op] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", number[k.op], k.verb))
		}
	}
	return fmt.Sprintf("%s: %s", dir, strings.Join(counts, ", "))
}
