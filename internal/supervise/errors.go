package supervise

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/units"
	"github.com/zsbx/zsbx/policy"
)

// The codes of an Error that package policy does not give. They are stable.
const (
	CodeFailed    policy.Code = "failed"     // any other error
	CodeUsage     policy.Code = "usage"      // options, or an option and a limit, exclude each other
	CodePolicy    policy.Code = "policy"     // a rule is wrong, or leads where it must not
	CodeGap       policy.Code = "gap"        // this machine can't keep a promise, or lacks the tracker asked for
	CodeNotFound  policy.Code = "not-found"  // the command was not found
	CodeCannotRun policy.Code = "cannot-run" // the command can't be executed
	CodeAudit     policy.Code = "audit"      // the audit log is required, and can't be written
	CodeSession   policy.Code = "session"    // the session can't be recorded or ended
)

// Error is an error with more for the user than a message. The hint is flags of zsbx run,
// or a command line. Other errors are *enforce.GapError, policy.Errors, *LimitError and
// *OutputError.
type Error = policy.Error

// coded gives an error of resolving a policy its code, unless it has one.
func coded(err error) error {
	if _, has := errors.AsType[*Error](err); has || err == nil {
		return err
	}
	return &Error{Code: CodePolicy, Err: err}
}

// ErrLost says that it is not known how the command ended: what watched over it was
// killed.
var ErrLost = errors.New("how the command ended is not known")

// LimitError says that the command was ended because it reached a limit. There was a
// warning when that happened.
type LimitError struct {
	Limit string        // "timeout" or "max-output"
	Time  time.Duration // of timeout
	Bytes int64         // of max-output
	From  policy.Origin
}

func (e *LimitError) Error() string {
	if e.Limit == limitTime {
		return fmt.Sprintf("the command took longer than %s, and was ended", e.what())
	}
	return fmt.Sprintf("the command wrote more than %s, and was ended", e.what())
}

// what returns the limit, and who set it, if that is known.
func (e *LimitError) what() string {
	what := e.Time.String()
	if e.Limit == limitOutput {
		what = units.FormatSize(e.Bytes)
	}
	if from := e.From.String(); from != "" {
		what += " (" + from + ")"
	}
	return what
}

const (
	limitTime   = "timeout"
	limitOutput = "max-output"
)

// OutputError says that not all of the command's output has arrived.
type OutputError struct {
	Signal syscall.Signal // the signal that ended the wait for the reader; 0 for none
	Late   *LimitError    // the time limit that ended it; nil for none
	Read   bool           // reading failed, not writing
	Err    error          // of writing or reading
}

func (e *OutputError) Error() string {
	switch {
	case e.Signal != 0:
		return fmt.Sprintf("not all of the command's output was written: %s", e.Signal)
	case e.Late != nil:
		return "nobody read all of the command's output within " + e.Late.what()
	case e.Read:
		return fmt.Sprintf("reading the command's output: %v", e.Err)
	}
	return fmt.Sprintf("writing the command's output: %v", e.Err)
}

func (e *OutputError) Unwrap() error { return e.Err }
