package seatbelt

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/policy"
)

// A ProfileError says which rule of a policy can't be written into a Seatbelt profile.
type ProfileError struct {
	Text   string        // the path, glob or name, as in the policy
	Origin policy.Origin // who wrote it
	Err    error
}

func (e *ProfileError) Error() string {
	return fmt.Sprintf("%s: writing %q into a seatbelt profile: %v", e.Origin, e.Text, e.Err)
}

// Unwrap returns the reason.
func (e *ProfileError) Unwrap() error { return e.Err }

// comment makes s safe in a comment, which ends with the line: a path or the name of a policy
// file must not end the comment and begin a rule.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), 300)])
}

// sbpl collects the text of a profile, and keeps the first error.
type sbpl struct {
	b   strings.Builder
	err error

	roots   map[string]bool // directories that the policy makes writable
	pinned  map[string]bool // directories that may not be moved
	whole   map[string]bool // directories that may not be cloned
	message string          // a modifier for denials, or ""
}

// fail keeps the first error, with the rule that caused it.
func (w *sbpl) fail(text string, from policy.Origin, err error) {
	if w.err == nil {
		w.err = &ProfileError{Text: text, Origin: from, Err: err}
	}
}

// section begins a group of rules with a heading.
func (w *sbpl) section(title string) { fmt.Fprintf(&w.b, "\n;; %s\n", title) }

// allow writes one rule. Filters are alternatives.
func (w *sbpl) allow(ops []string, from string, filters ...string) {
	w.rule("allow", ops, from, filters)
}

// deny writes one rule. Filters are alternatives.
func (w *sbpl) deny(ops []string, from string, filters ...string) {
	if w.message != "" {
		filters = append(filters[:len(filters):len(filters)], w.message)
	}
	w.rule("deny", ops, from, filters)
}

// rule writes one rule, on several lines if it is long, with its origin as a comment on the
// last. Every release knows the operations; base.sb has those that some releases lack.
func (w *sbpl) rule(action string, ops []string, from string, filters []string) {
	fmt.Fprintf(&w.b, "(%s %s) ; %s\n", action, wrapped(ops, filters), comment(from))
}

// wrapped joins operations and filters, breaking long rules into lines.
func wrapped(ops, filters []string) string {
	if len(ops) <= 6 && len(filters) <= 1 {
		return strings.Join(append(ops[:len(ops):len(ops)], filters...), " ")
	}
	var lines []string
	for group := range slices.Chunk(ops, 6) {
		lines = append(lines, strings.Join(group, " "))
	}
	return strings.Join(append([]string{strings.Join(lines, "\n       ")}, filters...), "\n    ")
}

// filter returns "(name "text")". After an error the result does not matter, since there will
// be no profile.
func (w *sbpl) filter(name, text string, from policy.Origin) string {
	q, err := fingerprint.Quote(text)
	if err != nil {
		w.fail(text, from, err)
	}
	return "(" + name + " " + q + ")"
}
