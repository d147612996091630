package cmd

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// The rules of the voice. stdout belongs to the command, and to the data that
// a command was asked for. All else goes to stderr as
//
//	zsbx: error: what could not be done, and to what
//	zsbx: warning: what is not as one may think
//	zsbx: hint: something to type as it stands: a command line, or flags
//
// in lower case and without a full stop. With --json errors are one JSON
// object on stderr, with a code that stays the same from release to release.

// voice says things to the user.
type voice struct {
	w     io.Writer
	json  bool
	color bool
}

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
	codeFailed    = "failed"     // anything without a code of its own
	codeUsage     = "usage"      // the command line is wrong
	codePolicy    = "policy"     // a policy file or a rule is wrong
	codeUntrusted = "untrusted"  // the project policy is not trusted
	codeGap       = "gap"        // this machine can't keep a promise
	codeNotFound  = "not-found"  // the command was not found
	codeCannotRun = "cannot-run" // the command can't be executed
	codeSession   = "session"    // no such session, or it can't be ended
	codeOutput    = "output"     // the command's output could not be written
	codeShortage  = "shortage"   // this machine is short of something; trying again may help
)

// usageErr is an error of the command line.
func usageErr(format string, args ...any) error {
	return &failure{code: codeUsage, status: exitFailed, err: fmt.Errorf(format, args...)}
}

// usageHint is an error of the command line and what to type instead.
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

func (v *voice) warn(format string, args ...any) {
	v.line("warning", "33", fmt.Sprintf(format, args...))
}

func (v *voice) hint(format string, args ...any) {
	v.line("hint", "36", fmt.Sprintf(format, args...))
}

// line writes one line for each line of msg.
func (v *voice) line(kind, color, msg string) {
	if v.color {
		kind = "\x1b[" + color + "m" + kind + "\x1b[0m"
	}
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimRight(msg, "\n"), "\n") {
		b.WriteString("zsbx: " + kind + ": " + printable(l) + "\n")
	}
	io.WriteString(v.w, b.String())
}

// printable escapes what could steer a terminal: names come from files and
// directories that somebody else made.
func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && s[i] != "\uFFFD"[0]:
			fmt.Fprintf(&b, `\x%02x`, s[i]) // not UTF-8: 0x9b alone begins a sequence, too
		case unprintable(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unprintable tells control and format characters, such as those that turn
// the direction of writing.
func unprintable(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}

// report prints err and gives the exit status that goes with it.
func (v *voice) report(err error) int {
	if err == nil {
		return exitOK
	}
	fs := failures(err, nil)
	for i, f := range fs {
		fs[i] = shortage(f)
	}
	st := fs[0].status
	if v.json {
		v.reportJSON(fs)
		return st
	}
	for _, f := range fs {
		if f.err != nil {
			v.line("error", "31", f.err.Error())
		}
	}
	said := ""
	for _, f := range fs {
		if f.hint != "" && f.hint != said {
			v.hint("%s", f.hint)
			said = f.hint
		}
	}
	return st
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

// failures takes joined errors apart and gives each a code and a status. A
// failure around a join passes its code on to what it joins.
func failures(err error, outer *failure) []*failure {
	if f, ok := err.(*failure); ok {
		if f.err == nil || !isJoin(f.err) {
			return []*failure{f}
		}
		return failures(f.err, f)
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*failure
		for _, e := range j.Unwrap() {
			all = append(all, failures(e, outer)...)
		}
		if len(all) > 0 {
			return all
		}
	}
	f := &failure{code: codeFailed, status: exitFailed, err: err}
	if p, ok := err.(*policy.Error); ok {
		f.code, f.hint, f.origin = string(p.Code), p.Hint, p.Origin
		return []*failure{f}
	}
	if outer != nil {
		f.code, f.status, f.hint = outer.code, outer.status, outer.hint
	} else if in := (*failure)(nil); errors.As(err, &in) {
		f.code, f.status, f.hint = in.code, in.status, in.hint
	}
	return []*failure{f}
}

func isJoin(err error) bool {
	_, ok := err.(interface{ Unwrap() []error })
	return ok
}

// jsonError is an error as --json prints it.
type jsonError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`

	Origin *jsonOrigin `json:"origin,omitempty"` // for mistakes in policies
}

func (v *voice) reportJSON(fs []*failure) {
	out := struct {
		Errors []jsonError `json:"errors"`
	}{}
	for _, f := range fs {
		if f.err != nil {
			e := jsonError{Code: f.code, Message: f.err.Error(), Hint: f.hint}
			if f.origin != (policy.Origin{}) {
				o := originJSON(f.origin)
				e.Origin = &o
			}
			out.Errors = append(out.Errors, e)
		}
	}
	if out.Errors != nil {
		writeJSON(v.w, out, "")
	}
}
