package sandbox

import (
	"errors"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/policy"
)

// The codes of a policy.Error that package policy does not give. They are stable.
const (
	CodeFailed    = supervise.CodeFailed    // any other error
	CodeUsage     = supervise.CodeUsage     // options, or an option and a limit, exclude each other
	CodePolicy    = supervise.CodePolicy    // a rule is wrong, or leads where it must not
	CodeGap       = supervise.CodeGap       // this machine lacks the tracker that was asked for
	CodeNotFound  = supervise.CodeNotFound  // the command was not found
	CodeCannotRun = supervise.CodeCannotRun // the command can't be executed
	CodeAudit     = supervise.CodeAudit     // the audit log is required, and can't be written
	CodeSession   = supervise.CodeSession   // the session can't be recorded or ended
)

// ErrLost says that it is not known how the command ended: what watched over it was killed.
var ErrLost = supervise.ErrLost

// Gap is a promise that can't be kept on this machine.
type Gap struct {
	Name    string        `json:"name"`            // stable: "tcp-ports", "truncate", "deny"
	Core    bool          `json:"core"`            // no command starts unless it is accepted; else it is hardening
	Promise string        `json:"promise"`         // what was asked for: "only the TCP ports that are listed"
	Why     string        `json:"why"`             // what is missing
	Hint    string        `json:"hint,omitempty"`  // what to type to zsbx instead; may be ""
	Origin  policy.Origin `json:"origin,omitzero"` // the rule that asked; zero for defaults
}

// GapError says which promises of a policy this machine can't keep. It is an
// errors.ErrUnsupported.
type GapError struct {
	Gaps []Gap // at least one

	err error
}

// Error names the promises.
func (e *GapError) Error() string { return e.err.Error() }

// Is makes every GapError an errors.ErrUnsupported.
func (e *GapError) Is(target error) bool { return target == errors.ErrUnsupported }

// LimitError says that the command was ended because it reached a limit. There was a warning
// when that happened.
type LimitError struct {
	Limit string        // "timeout" or "max-output"
	Time  time.Duration // of timeout
	Bytes int64         // of max-output
	From  policy.Origin // of the limit

	err error
}

// Error names the limit and who set it.
func (e *LimitError) Error() string { return e.err.Error() }

// OutputError says that not all of the command's output has arrived.
type OutputError struct {
	Signal syscall.Signal // the signal that ended the wait for the reader; 0 for none
	Late   bool           // the time limit ended it
	Read   bool           // reading failed, not writing
	Err    error          // of writing or reading

	err error
}

// Error says what kept the output from arriving.
func (e *OutputError) Error() string { return e.err.Error() }

// Unwrap returns the error of writing or reading.
func (e *OutputError) Unwrap() error { return e.Err }

// errorOf returns an error with the types of this package, if it has others for them. What it joins
// is taken apart only then: an error that wraps several may have a type or a text that they lack.
func errorOf(err error) error {
	if !hasOtherTypes(err) {
		return err
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range all.Unwrap() {
			out = append(out, errorOf(e))
		}
		return errors.Join(out...)
	}
	if e, ok := errors.AsType[*enforce.GapError](err); ok {
		return &GapError{Gaps: gapsOf(e.Gaps), err: err}
	}
	if e, ok := errors.AsType[*supervise.OutputError](err); ok {
		return &OutputError{Signal: e.Signal, Late: e.Late != nil, Read: e.Read, Err: e.Err, err: err}
	}
	if e, ok := errors.AsType[*supervise.LimitError](err); ok {
		return &LimitError{Limit: e.Limit, Time: e.Time, Bytes: e.Bytes, From: e.From, err: err}
	}
	return err
}

// hasOtherTypes reports whether an error wraps one that has another type in this package.
func hasOtherTypes(err error) bool {
	_, gap := errors.AsType[*enforce.GapError](err)
	_, output := errors.AsType[*supervise.OutputError](err)
	_, limit := errors.AsType[*supervise.LimitError](err)
	return gap || output || limit
}

func gapsOf(all []enforce.Gap) []Gap {
	var out []Gap
	for _, g := range all {
		core := g.Kind == enforce.Core
		out = append(out, Gap{Name: g.Name, Core: core, Promise: g.Promise, Why: g.Why, Hint: g.Hint, Origin: g.Origin})
	}
	return out
}
