package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Code names a kind of error. Codes are stable: they stand in JSON output.
type Code string

// The codes of an Error.
const (
	CodeSyntax        Code = "syntax"        // not TOML or not JSON
	CodeUnknownKey    Code = "unknown-key"   // a key that the format does not have
	CodeDuplicate     Code = "duplicate-key" // a key given twice
	CodeType          Code = "wrong-type"    // a string where a list belongs
	CodeValue         Code = "bad-value"     // port 70000, an empty path
	CodeLimit         Code = "too-large"     // too many rules, too large a file
	CodeFile          Code = "bad-file"      // a policy file that cannot be read or is not a file
	CodeMissing       Code = "missing-path"  // a path that does not exist on this machine
	CodePath          Code = "bad-path"      // a path that cannot be resolved: a loop, no permission
	CodeVariable      Code = "unset-variable"
	CodeContradiction Code = "contradiction" // two settings that exclude each other
	CodeRefused       Code = "refused"       // a rule that would break what zsbx relies on
	CodeGuard         Code = "guard"         // a list of words refuses the command line
	CodeMore          Code = "more"          // how many errors were left out
)

// Error is one thing that is wrong with a policy, and where it was written.
type Error struct {
	Origin Origin
	Code   Code
	Msg    string // lower-case, no full stop
	Hint   string // what to type instead; may be ""
	Err    error  // the cause, or nil
}

// Error is "origin: message".
func (e *Error) Error() string {
	msg := e.Msg
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	if o := e.Origin.String(); o != "" {
		return o + ": " + msg
	}
	return msg
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all that is wrong with a policy, sorted by place. It is never
// empty when it is returned as an error.
type Errors []*Error

// Error has one line for each.
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

// maxErrors bounds a report: whoever feeds us the wrong file needs to see
// that, not a hundred thousand lines.
const maxErrors = 100

// err returns es as an error: sorted by place where they come from the same
// source, without repetitions, cut at maxErrors, and nil when there are none.
func (es Errors) err() error {
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

// longest is the most that a name may have to be compared with others, in bytes.
const longest = 31

// DidYouMean asks whether a name was meant by one that there is not, or is "": the
// nearest, of which at most a third of the letters are wrong, or one of a short name's.
// Two letters that changed places count as one.
func DidYouMean(typed string, names []string) string {
	best, at := "", max(len(typed)/3, 1)+1
	if len(typed) < 2 || len(typed) > longest {
		return ""
	}
	for _, name := range names {
		if d := distance(typed, name[:min(len(name), longest)]); d < at {
			best, at = "; did you mean "+name+"?", d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete, substitute or swap with the
// next one that makes b of a.
func distance(a, b string) int {
	var of [longest + 1][longest + 1]int // the first bytes of a and of b
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			switch {
			case i == 0 || j == 0:
				of[i][j] = i + j
			case a[i-1] == b[j-1]:
				of[i][j] = of[i-1][j-1]
			default:
				of[i][j] = 1 + min(of[i-1][j], of[i][j-1], of[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				of[i][j] = min(of[i][j], 1+of[i-2][j-2])
			}
		}
	}
	return of[len(a)][len(b)]
}
