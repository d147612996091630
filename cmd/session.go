package cmd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/track"
)

// endTime is how long zsbx waits for the end of what it killed.
const endTime = 30 * time.Second

// begin makes the session that the command will run in.
func (o *runFlags) begin(plan *enforce.Plan) (*track.Session, error) {
	opts := track.Options{Name: o.name, Tracker: track.Kind(o.track), Keep: o.keep, Exec: o.exec, Temp: o.temp, Watch: watcher()}
	if plan != nil {
		opts.Confined = plan.Confines()
		opts.Scoped = plan.ScopesSignals()
	}
	s, err := track.Begin(opts)
	if err != nil {
		var te *track.TrackerError
		if errors.As(err, &te) {
			return nil, o.trackerErr(te)
		}
		return nil, sessionErr(err)
	}
	if o.idFile != "" {
		if err := o.writeID(plan, s.ID()); err != nil {
			o.discard(s)
			return nil, fmt.Errorf("--id-file: %w", err)
		}
	}
	return s, nil
}

// discard ends a session in which nothing was started.
func (o *runFlags) discard(s *track.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	s.Close(ctx)
}

// trackerErr is the refusal of a tracker that was asked for.
func (o *runFlags) trackerErr(e *track.TrackerError) error {
	return &failure{code: codeGap, status: exitFailed, hint: e.Hint, err: fmt.Errorf("--track %s: %w", o.track, e)}
}

// close ends the session, and says what could not be ended or proved.
func (r *running) close() error {
	ctx := context.Background()
	if !r.emptied { // else there is nothing to wait for, and a timer starts threads
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, endTime)
		defer cancel()
	}
	report, err := r.s.Close(ctx)
	r.kept = report.Kept
	if runtime.GOOS == "darwin" { // elsewhere the keeper has said so
		r.tellEnded(report.Killed)
	}
	switch {
	case err != nil:
		return sessionErr(err)
	case report.Kept:
		r.a.say.hint("zsbx reap %s", shortID(&report))
	case len(report.Survivors) > 0:
		var pids []string
		for _, p := range report.Survivors {
			pids = append(pids, fmt.Sprint(p.Pid))
		}
		return &failure{
			code: codeSession, status: exitFailed, hint: "zsbx reap " + report.ID,
			err: fmt.Errorf("these processes of the command are still there: %s", strings.Join(pids, ", ")),
		}
	case report.NotRemoved != nil:
		r.a.say.warn("nothing of the command is left, but its session is still listed: %v", report.NotRemoved)
		r.a.say.hint("zsbx reap %s", report.ID)
	case !report.Proof:
		r.a.say.warn("it is not certain that nothing of the command is left: %s", report.Unproved)
	}
	return nil
}

// afterwards is a failure after the command has run: its status is the command's
// own, where that is not 0.
func afterwards(err error) error {
	var f *failure
	if errors.As(err, &f) && f.status == exitFailed {
		late := *f
		late.status = exitAfter
		return &late
	}
	return err
}

// shortID names a session in as few letters as one cares to type.
func shortID(r *track.Report) string {
	if r.Name != "" {
		return r.Name
	}
	return r.ID[:8]
}
