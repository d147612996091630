package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// failure is an error with what the user needs beside the message. Commands
// return it; voice.report prints it.
type failure struct {
	code   policy.Code // stable, for --json
	status int         // exit status
	hint   string      // something to type; may be ""
	origin policy.Origin
	err    error // nil if there is nothing left to say and only the status counts

	signal syscall.Signal // zsbx ends itself with it when all is done; 0 for none
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit status %d", f.status)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// The codes of errors that other packages do not define.
const (
	codeUntrusted = "untrusted" // the project policy is not trusted
	codeOutput    = "output"    // the command's output could not be written
	codeShortage  = "shortage"  // this machine is short of something; trying again may help
)

// usageHint returns an error about the command line. hint is what to type instead, or "".
func usageHint(hint, format string, args ...any) error {
	return refusal(sandbox.CodeUsage, hint, format, args...)
}

// refusal returns an error with a code. hint is what to type, or "".
func refusal(code policy.Code, hint, format string, args ...any) error {
	return &policy.Error{Code: code, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// coded gives the code to each of the errors that err joins that has none.
func coded(code policy.Code, err error) error {
	var all []error
	for _, f := range failures(err) {
		if f.code == sandbox.CodeFailed {
			f.code = code
		}
		all = append(all, f)
	}
	return errors.Join(all...)
}

// status returns an exit status without a message, as an error; nil for 0.
func status(n int) error {
	if n == exitOK {
		return nil
	}
	return &failure{status: n}
}

// failures takes joined errors apart and gives each a code, a hint and a status.
func failures(err error) (all []*failure) {
	for _, e := range leaves(err) {
		f := &failure{code: sandbox.CodeFailed, status: exitFailed, err: e, hint: sessionHint(e)}
		switch e := e.(type) {
		case *failure:
			f = e
		case *enforce.GapError:
			lines, hints := gapLines(e.Gaps)
			for i, line := range lines {
				all = append(all, failures(refusal(sandbox.CodeGap, hints[i], "can't be enforced here: %s", line))...)
			}
			continue
		case *sandbox.OutputError:
			f.output(e)
		default:
			f.known()
		}
		all = append(all, f)
	}
	return all
}

// leaves returns the errors that err joins, or err itself. An error that wraps several,
// but has a text of its own, is not taken apart.
func leaves(err error) (all []error) {
	j, several := err.(interface{ Unwrap() []error })
	if several {
		joined := errors.Join(j.Unwrap()...)
		several = joined != nil && joined.Error() == err.Error()
	}
	switch {
	case several:
		for _, e := range j.Unwrap() {
			all = append(all, leaves(e)...)
		}
	case err != nil:
		all = []error{err}
	}
	return all
}

// known takes over the code, the hint and the origin that another package gave an error.
func (f *failure) known() {
	e, ok := errors.AsType[*policy.Error](f.err)
	if !ok {
		return
	}
	f.code, f.hint, f.origin = e.Code, cmp.Or(e.Hint, f.hint), e.Origin
	switch {
	case errors.Is(e, sandbox.ErrLost):
		f.status = exitLost
	case e.Code == sandbox.CodeNotFound:
		f.status = exitNotFound
	case e.Code == sandbox.CodeCannotRun:
		f.status = exitCannotRun
	}
}

// sessionHint returns what to type for an error of package track, or "".
func sessionHint(err error) string {
	te, ok := errors.AsType[*track.TrackerError](err)
	switch {
	case ok:
		return te.Hint
	case errors.Is(err, track.ErrNotFound), errors.Is(err, track.ErrHeld):
		return "zsbx ps"
	case errors.Is(err, track.ErrNoPlace) && fork.ShortageOf(err) == nil:
		return "export XDG_STATE_HOME=$(mktemp -d /var/tmp/zsbx.XXXXXX)"
	}
	return ""
}

// shortage adds which resource ran out, if that is why zsbx failed, and what to type.
func (f *failure) shortage() {
	s := fork.ShortageOf(f.err)
	if s != nil && f.status == exitFailed && f.code != codeOutput { // otherwise the command ran
		f.code, f.err, f.hint = codeShortage, fmt.Errorf("%w (%s); try again", f.err, s.What), cmp.Or(s.Hint, f.hint)
	}
}

// output sets the status for output that was lost. When nobody reads the pipe, zsbx ends
// as a program that SIGPIPE kills: with that status, and without a message.
func (f *failure) output(e *sandbox.OutputError) {
	f.code, f.status = codeOutput, exitAfter
	switch {
	case errors.Is(e.Err, syscall.EPIPE):
		f.status, f.err = exitSignal+int(syscall.SIGPIPE), nil
	case e.Late != nil:
		f.status = exitTimeout
	case e.Signal != 0:
		f.endedBy(e.Signal)
	}
}

// endedBy sets the status for a command that a signal ended. SIGINT ends zsbx as well.
func (f *failure) endedBy(s syscall.Signal) {
	if f.status = exitSignal + int(s); s == syscall.SIGINT {
		f.signal = s
	}
}

// afterRun returns the outcome of a command that has run. Its own status, unless that
// is 0, comes before the errors that followed.
func afterRun(res *sandbox.Result, err error) error {
	own := &failure{status: res.Status.ExitStatus()}
	if res.Status.Signaled() {
		own.endedBy(res.Status.Signal())
	}
	var all []error
	for _, f := range failures(err) {
		limit := (*sandbox.LimitError)(nil)
		switch {
		case errors.As(f.err, &limit): // a warning has already said so
			if limit.Time > 0 {
				own = &failure{status: exitTimeout}
			}
			continue
		case f.status == exitLost:
			own.status = exitOK
		case f.status == exitFailed:
			f.status = exitAfter
		}
		all = append(all, f)
	}
	if own.status != exitOK {
		all = slices.Insert(all, 0, error(own))
	}
	return errors.Join(all...)
}
