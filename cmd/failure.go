package cmd

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
)

// failure is an error with what the user needs beside the message. Commands
// return it; voice.report prints it.
type failure struct {
	code   string // stable, for --json
	status int    // exit status
	hint   string // something to type; may be ""
	origin policy.Origin
	err    error // nil: all is said, only the status counts

	signal syscall.Signal // zsbx dies by it, when all is done; 0 for none
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit status %d", f.status)
	}
	return f.err.Error()
}

// Unwrap gives the error without hint and status.
func (f *failure) Unwrap() error { return f.err }

// The codes of errors that are not given by other packages.
const (
	codeFailed    = "failed"    // anything without a code of its own
	codeUsage     = "usage"     // the command line is wrong
	codePolicy    = "policy"    // a policy file or a rule is wrong
	codeUntrusted = "untrusted" // the project policy is not trusted
	codeGap       = "gap"       // this machine can't keep a promise
	codeSession   = "session"   // no such session, or it can't be ended
	codeOutput    = "output"    // the command's output could not be written
	codeShortage  = "shortage"  // this machine is short of something; trying again may help
)

// usageHint is an error of the command line, and what to type instead, or "".
func usageHint(hint, format string, args ...any) error {
	return &failure{code: codeUsage, status: exitFailed, hint: hint, err: fmt.Errorf(format, args...)}
}

// coded gives err a code, unless it has one.
func coded(code string, err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &failure{code: code, status: exitFailed, err: err}
}

// status is an exit status without a message.
func status(n int) error {
	if n == exitOK {
		return nil
	}
	return &failure{status: n}
}

// shortage names the resource, when zsbx failed since something ran out, and
// what to type.
func shortage(f *failure) *failure {
	s := fork.ShortageOf(f.err)
	if s == nil || f.status != exitFailed || f.code == codeOutput { // the command ran
		return f
	}
	g := *f
	g.code, g.err = codeShortage, fmt.Errorf("%w (%s); try again", f.err, s.What)
	if s.Hint != "" {
		g.hint = s.Hint
	}
	return &g
}

// failures takes joined errors apart and gives each a code and a status. A failure
// passes its own, outer, on to what it is around.
func failures(err error, outer *failure) (all []*failure) {
	for _, e := range leaves(err) {
		f := &failure{code: codeFailed, status: exitFailed}
		if outer != nil {
			*f = *outer
		}
		f.err = e
		switch e := e.(type) {
		case *failure:
			if e.err != nil {
				all = append(all, failures(e.err, e)...)
				continue
			}
			f = e
		case *enforce.GapError:
			all = append(all, failures(refuseGaps(e.Gaps), nil)...)
			continue
		case *policy.Error:
			f.code, f.hint, f.origin = string(e.Code), e.Hint, e.Origin
		case *sandbox.OutputError:
			f.output(e)
		default:
			f.known(outer == nil)
		}
		all = append(all, f)
	}
	return all
}

// leaves are the errors that err joins, or err itself.
func leaves(err error) (all []error) {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range j.Unwrap() {
			all = append(all, leaves(e)...)
		}
	} else if err != nil {
		all = []error{err}
	}
	return all
}

// known takes what package sandbox says of an error, if nobody else has.
func (f *failure) known(bare bool) {
	e := (*sandbox.Error)(nil)
	if !bare || !errors.As(f.err, &e) {
		return
	}
	f.code, f.hint = string(e.Code), e.Hint
	if e.Code == sandbox.CodeSession && f.hint == "" {
		f.hint = sessionHint(f.err)
	}
	switch {
	case errors.Is(f.err, sandbox.ErrLost):
		f.status = exitLost
	case e.Code == sandbox.CodeNotFound:
		f.status = exitNotFound
	case e.Code == sandbox.CodeCannotRun:
		f.status = exitCannotRun
	}
}

// output says what became of output that did not arrive. Who writes to a pipe that
// nobody reads ends by SIGPIPE, and without a word.
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

// endedBy takes the status of a command that a signal ended. Of SIGINT zsbx dies, too.
func (f *failure) endedBy(s syscall.Signal) {
	if f.status = exitSignal + int(s); s == syscall.SIGINT {
		f.signal = s
	}
}

// afterRun is what comes of a command that has run: its own status, where that is
// not 0, before that of what went wrong after it.
func afterRun(res *sandbox.Result, err error) error {
	all := []error{commandStatus(res.Status)}
	if errors.Is(err, sandbox.ErrLost) {
		all[0] = nil
	}
	for _, e := range leaves(err) {
		limit := (*sandbox.LimitError)(nil)
		if errors.As(e, &limit) { // a warning has said so
			if limit.Time > 0 {
				all[0] = status(exitTimeout)
			}
			continue
		}
		for _, f := range failures(e, nil) {
			if f.status == exitFailed {
				f.status = exitAfter
			}
			all = append(all, f)
		}
	}
	return errors.Join(all...)
}

// commandStatus is the exit status for that of the command.
func commandStatus(s syscall.WaitStatus) error {
	if !s.Signaled() {
		return status(s.ExitStatus())
	}
	f := &failure{}
	f.endedBy(s.Signal())
	return f
}
