package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/tempdir"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/internal/units"
)

// endTime is how long to wait for the end of what was killed.
const endTime = 30 * time.Second

// beginSession makes the session that the command will run in.
func (c *Command) beginSession() error {
	opts := track.Options{
		Name:    c.o.Name,
		Tracker: c.o.Tracker,
		Keep:    c.o.Keep,
		Exec:    c.o.InPlace,
		Temp:    c.temp.Path(),
		Watcher: watcher(),
		Limits:  c.bounds,
	}
	if c.plan != nil {
		opts.Confined = c.plan.Confines()
		opts.Scoped = c.plan.ScopesSignals()
	}
	var err error
	c.s, err = track.Begin(opts)
	if err != nil {
		c.s = nil
		return sessionErr(err)
	}
	if c.o.IDFile != "" {
		return c.writeFile("--id-file", c.o.IDFile, c.s.ID()+"\n", 0o644)
	}
	return nil
}

// sessionErr gives an error of package track its code.
func sessionErr(err error) error {
	if e, ok := errors.AsType[*track.TrackerError](err); ok {
		return &Error{Code: CodeGap, Hint: e.Hint, Err: e}
	}
	return &Error{Code: CodeSession, Err: err}
}

// close ends the session, and says what could not be ended or proved.
func (c *Command) close() (track.Report, error) {
	ctx := context.Background()
	if !c.emptied { // otherwise there is nothing to wait for, and a timer starts threads
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, endTime)
		defer cancel()
	}
	report, err := c.s.Close(ctx)
	if runtime.GOOS == "darwin" { // elsewhere the keeper has said so
		c.tellEnded(report.Killed)
	}
	c.tellMemory()
	if err != nil {
		return report, sessionErr(err)
	}
	if !report.Kept && len(report.Survivors) > 0 {
		err = fmt.Errorf("processes of the command that are still there: %d", len(report.Survivors))
		return report, &Error{Code: CodeSession, Hint: "zsbx reap " + report.ID, Err: err}
	}
	switch {
	case report.Kept:
		c.warn(Warning{Hint: "zsbx reap " + cmp.Or(report.Name, report.ID[:8])})
	case report.NotRemoved != nil:
		text := fmt.Sprintf("nothing of the command is left, but its session is still listed: %v", report.NotRemoved)
		c.warn(Warning{Text: text, Hint: "zsbx reap " + report.ID})
	case !report.Proof:
		c.warn(Warning{Text: "it is not certain that nothing of the command is left: " + report.Unproved})
	}
	return report, nil
}

// serve starts the broker at the first call. Most short commands make none, and should not
// share the processor with a thread that waits for it. If the command was not started,
// serve closes the broker.
func (c *Command) serve(started bool) {
	switch {
	case c.broker == nil:
	case !started:
		c.broker.Close()
		c.broker = nil
	default:
		queue := c.broker.Queue()
		if queue < 0 || !c.s.Beside(queue, c.answer) {
			c.answer(true)
		}
	}
}

// reserve makes this process's threads, once.
func (c *Command) reserve() { c.reserved.Do(func() { reserveThreads(threads) }) }

// reserveInTime makes them before the command can use up what they need: before it begins, or
// when it has run for a moment. That would delay a short command, so it is only done if that is
// scarce, or if this process is more than a bystander.
func (c *Command) reserveInTime(cmd *fork.Command) {
	cmd.Commit = append(cmd.Commit, func(*fork.Process) error {
		if c.o.Keep || c.o.Explain || c.relay != nil || scarce() {
			c.reserve()
		}
		return nil
	})
}

// answer starts the broker, which answers what the kernel can't decide. Without asked it
// closes a broker that was not started.
func (c *Command) answer(asked bool) {
	switch {
	case c.broker == nil, c.served != nil:
	case !asked:
		c.broker.Close()
		c.broker = nil
	default:
		c.served = make(chan struct{})
		c.reserve()
		go func() {
			defer close(c.served)
			if err := c.broker.Serve(); err != nil {
				c.warn(Warning{Text: fmt.Sprintf("the command can no longer connect to anything: %v", err)})
			}
		}()
	}
}

// Served waits until no process of the command is left that could need an answer from
// this one: see Options.Keep.
func (c *Command) Served() {
	if c.served != nil {
		<-c.served
	}
}

// Reap ends a session of the store with all that is left of it, as Store.Reap does. It removes its
// private temporary directory, and freezes its layer.
func Reap(ctx context.Context, st *track.Store, id string) (track.Report, error) {
	r, err := st.Reap(ctx, id)
	if err == nil && r.Removed { // no record leads to the directory any more
		err = errors.Join(tempdir.RemoveOf(r.Temp), freezeLayerOf(r.ID))
	}
	return r, err
}

// Sweep removes temporary directories of runs that were killed before they recorded a session.
// recorded are those of sessions in the store.
func Sweep(recorded []string) { tempdir.Sweep(os.Getenv("TMPDIR"), recorded) }

// tellMemory warns that the memory limit may have killed the command.
func (c *Command) tellMemory() {
	killed := c.status.Signaled() && c.status.Signal() == syscall.SIGKILL && c.endedItself()
	if killed && c.bounds.Memory > 0 {
		c.warn(Warning{Text: fmt.Sprintf("the command was killed, perhaps because of the memory limit, %s (%s)",
			units.FormatSize(c.bounds.Memory), c.limits.Memory.From)})
	}
}
