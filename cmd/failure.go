package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
)

// problem is one error as it is printed. Its code, hint and origin are those of the
// *policy.Error in it.
type problem struct {
	Code    policy.Code   `json:"code"` // stable
	Message string        `json:"message"`
	Hint    string        `json:"hint,omitempty"` // something to type
	Origin  policy.Origin `json:"origin,omitzero"`
}

// exit is what zsbx ends with, as an error that has nothing left to say.
type exit supervise.Outcome

func (e exit) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// The codes of errors that other packages do not define.
const (
	codeUntrusted = "untrusted" // the project policy is not trusted
	codeOutput    = "output"    // the command's output, or a message about it, could not be written
	codeShortage  = "shortage"  // this machine is short of something; trying again may help
)

// usageHint returns an error about the command line. hint is what to type instead, or "".
func usageHint(hint, format string, args ...any) error {
	return refusal(supervise.CodeUsage, hint, format, args...)
}

// refusal returns an error with a code. hint is what to type, or "".
func refusal(code policy.Code, hint, format string, args ...any) error {
	return &policy.Error{Code: code, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// coded gives the code to each of the errors that err joins that has none.
func coded(code policy.Code, err error) error {
	all := leaves(err)
	for i, e := range all {
		_, has := errors.AsType[*policy.Error](e)
		if _, done := e.(exit); !done && !has {
			all[i] = &policy.Error{Code: code, Err: e}
		}
	}
	return errors.Join(all...)
}

// status returns an exit status without a message, as an error; nil for 0.
func status(n int) error {
	if n == exitOK {
		return nil
	}
	return exit{Status: n}
}

// problems returns one problem for each of the errors that err joins.
func problems(err error) (all []problem) {
	errs := leaves(err)
	for _, e := range errs {
		p := problem{Code: supervise.CodeFailed, Message: e.Error(), Hint: sessionHint(e)}
		if known, ok := errors.AsType[*policy.Error](e); ok {
			p.Code = known.Code
			p.Hint = cmp.Or(known.Hint, p.Hint)
			p.Origin = known.Origin
		}
		switch e := e.(type) {
		case exit:
			continue
		case *enforce.GapError:
			lines, hints := gapLines(e.Gaps)
			for i, line := range lines {
				text := "can't be enforced here: " + line
				all = append(all, problem{Code: supervise.CodeGap, Message: text, Hint: hints[i]})
			}
			continue
		case *supervise.OutputError:
			p.Code = codeOutput
			if errors.Is(e.Err, syscall.EPIPE) {
				continue // as a program that SIGPIPE kills
			}
		}
		_, ran := errs[0].(exit)
		if s := fork.ShortageOf(e); s != nil && !ran && outcome(e).Status == exitFailed {
			p.Code = codeShortage
			p.Message = fmt.Sprintf("%s (%s); try again", p.Message, s.What)
			p.Hint = cmp.Or(s.Hint, p.Hint)
		}
		all = append(all, p)
	}
	return all
}

// outcome returns what zsbx ends with because of one error.
func outcome(err error) supervise.Outcome {
	known, _ := errors.AsType[*policy.Error](err)
	switch e := err.(type) {
	case exit:
		return supervise.Outcome(e)
	case *supervise.OutputError:
		switch {
		case errors.Is(e.Err, syscall.EPIPE): // nobody reads the pipe
			return endedBy(syscall.SIGPIPE)
		case e.Late != nil:
			return supervise.Outcome{Status: exitTimeout}
		case e.Signal != 0:
			return endedBy(e.Signal)
		}
		return supervise.Outcome{Status: exitAfter}
	}
	switch {
	case errors.Is(err, supervise.ErrLost):
		return supervise.Outcome{Status: exitLost}
	case known != nil && known.Code == supervise.CodeNotFound:
		return supervise.Outcome{Status: exitNotFound}
	case known != nil && known.Code == supervise.CodeCannotRun:
		return supervise.Outcome{Status: exitCannotRun}
	}
	return supervise.Outcome{Status: exitFailed}
}

// endedBy returns the outcome of a command that a signal ended. SIGINT ends zsbx as well.
func endedBy(s syscall.Signal) supervise.Outcome {
	out := supervise.Outcome{Status: exitSignal + int(s)}
	if s == syscall.SIGINT {
		out.Signal = s
	}
	return out
}

// leaves returns the errors that err joins, or err itself. An error that wraps several
// errors and has another text than they have is one error.
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

// sessionHint returns what to type for an error of package track, or "".
func sessionHint(err error) string {
	switch {
	case errors.Is(err, track.ErrNotFound), errors.Is(err, track.ErrLocked):
		return "zsbx ps"
	case errors.Is(err, track.ErrNoDir) && fork.ShortageOf(err) == nil:
		return "export XDG_STATE_HOME=$(mktemp -d /var/tmp/zsbx.XXXXXX)"
	}
	return ""
}

// afterRun returns the outcome of a command that has run, and the errors that followed. The
// outcome is the command's status. If that is 0, the first error decides.
func afterRun(res *supervise.Result, err error) error {
	out := supervise.Outcome{Status: res.Status.ExitStatus()}
	if res.Status.Signaled() {
		out = endedBy(res.Status.Signal())
	}
	var all []error
	for _, e := range leaves(err) {
		if limit, ok := errors.AsType[*supervise.LimitError](e); ok { // a warning has already said so
			if limit.Time > 0 {
				out = supervise.Outcome{Status: exitTimeout}
			}
			continue
		}
		if errors.Is(e, supervise.ErrLost) {
			out = supervise.Outcome{}
		}
		all = append(all, e)
	}
	if out.Status == exitOK && all != nil {
		out = outcome(all[0])
		if out.Status == exitFailed {
			out.Status = exitAfter
		}
	}
	return errors.Join(slices.Insert(all, 0, error(exit(out)))...)
}
