package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code names a kind of error. Codes are stable, because they are part of JSON output.
type Code string

const (
	CodeSyntax        Code = "syntax"         // not TOML or not JSON
	CodeUnknownKey    Code = "unknown-key"    // a key that the format does not have
	CodeDuplicate     Code = "duplicate-key"  // a key given twice
	CodeType          Code = "wrong-type"     // a string where a list belongs
	CodeValue         Code = "bad-value"      // port 70000, an empty path
	CodeLimit         Code = "too-large"      // too many rules, too large a file
	CodeFile          Code = "bad-file"       // a policy file that cannot be read or is not a file
	CodeMissing       Code = "missing-path"   // a path that does not exist on this machine
	CodePath          Code = "bad-path"       // a path that cannot be resolved: a loop, no permission
	CodeVariable      Code = "unset-variable" // a variable in a path that has no value
	CodeContradiction Code = "contradiction"  // two settings that exclude each other
	CodeRefused       Code = "refused"        // a rule that would break what zsbx relies on
	CodeGuard         Code = "guard"          // a list of words refuses the command line
	CodeMore          Code = "more"           // how many errors were left out
)

// Error is one thing that is wrong with a policy, and where it was written. Package
// sandbox uses it, with other codes, for other errors with a hint for the user.
type Error struct {
	Origin Origin
	Code   Code
	Msg    string // lower-case, no full stop; "" if Err says all
	Hint   string // what to type instead; may be ""
	Err    error  // the cause, or nil
}

// Error returns "origin: message: cause", without those that are empty.
func (e *Error) Error() string {
	parts := []string{e.Origin.String(), e.Msg}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all that is wrong with a policy, sorted by place. It is never
// empty when it is returned as an error.
type Errors []*Error

// Error returns one line for each.
func (es Errors) Error() string {
	return errors.Join(es.Unwrap()...).Error()
}

// Unwrap lets errors.As find each of them.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// maxErrors bounds a report: a user who names a wrong file needs to see that, not a
// hundred thousand lines.
const maxErrors = 100

// Err returns es as an error: sorted by place within the same source, cut at maxErrors,
// and nil if there are none.
func (es Errors) Err() error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		if a.Origin.Source != b.Origin.Source {
			return 0
		}
		return cmp.Or(a.Origin.Line-b.Origin.Line, a.Origin.Column-b.Origin.Column)
	})
	if n := len(es) - maxErrors; n > 0 {
		es = append(es[:maxErrors:maxErrors], &Error{
			Origin: Origin{Source: es[0].Origin.Source},
			Code:   CodeMore, Msg: fmt.Sprintf("%d more errors", n),
		})
	}
	return es
}
