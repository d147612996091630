package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/track"
)

// endTime is how long zsbx waits for the end of what it killed.
const endTime = 30 * time.Second

// begin makes the session that the command will run in.
func (o *runFlags) begin(plan *enforce.Plan) (*track.Session, error) {
	opts := track.Options{Name: o.name, Tracker: track.Kind(o.track), Keep: o.keep, Temp: o.temp}
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
		if err := writeID(o.idFile, s.ID()); err != nil {
			o.discard(s)
			return nil, fmt.Errorf("--id-file: %w", err)
		}
	}
	return s, nil
}

// writeID writes a session's id to a file. A symbolic link is not followed: an
// earlier command may have put it there, to have a file of the user's
// overwritten that it could not write itself. The links of /dev and /proc, as
// /dev/stdout, are the system's.
func writeID(name, id string) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if full, err := filepath.Abs(name); err != nil || !strings.HasPrefix(full, "/dev/") && !strings.HasPrefix(full, "/proc/") {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(name, flags, 0o644)
	if errors.Is(err, syscall.ELOOP) {
		return &fs.PathError{Op: "open", Path: name, Err: errors.New("is a symbolic link")}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(id + "\n")
	return errors.Join(err, f.Close())
}

// discard ends a session in which nothing was started.
func (o *runFlags) discard(s *track.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	s.Close(ctx)
}

// trackerErr is the refusal of a tracker: of the one that was asked for, or of
// the only one here, with --exec.
func (o *runFlags) trackerErr(e *track.TrackerError) error {
	flag := "--track " + o.track
	if o.exec && (o.track == "" || o.track == string(track.Auto)) {
		flag = "--exec"
	}
	return &failure{code: codeGap, status: exitFailed, hint: e.Hint, err: fmt.Errorf("%s: %w", flag, e)}
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
	case !report.Proof:
		r.a.say.warn("it is not certain that nothing of the command is left: %s", report.Unproved)
	}
	return nil
}

// shortID names a session in as few letters as one cares to type.
func shortID(r *track.Report) string {
	if r.Name != "" {
		return r.Name
	}
	return r.ID[:8]
}
