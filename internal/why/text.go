package why

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/zsbx/zsbx/internal/terminal"
)

// Headline says in a few words how the command ended and what it was refused.
func (r *Report) Headline() string {
	what := "no refusal by zsbx was seen"
	if n := len(r.Entries); n > 0 {
		causes := count(r.Causes, "looks", "look")
		what = count(n, "thing was", "things were") + " refused, " + causes + " like the cause"
	}
	return fmt.Sprintf("exit status %d; %s", r.Status, what)
}

// Lines returns the rest of the report as lines for people. short writes a path as people do.
// At most shown entries and variables are listed, the likely causes first; 0 is all. Control
// characters are escaped.
func (r *Report) Lines(short func(string) string, shown int) []string {
	t := &text{short: short}
	n := len(r.Entries)
	listed := n
	if shown > 0 {
		listed = min(n, shown)
	}
	for i := range r.Entries[:listed] {
		t.entry(&r.Entries[i])
	}
	if more := n - listed; more > 0 {
		t.line("  %s less likely: --json or --explain-file has all", count(more, "more is", "more are"))
	}
	if r.Ordinary > 0 {
		more := ""
		if n > 0 {
			more = "more "
		}
		t.line("  %s refused, and would also be without zsbx", count(r.Ordinary, more+"call was", more+"calls were"))
	}
	if f := r.Last; f != nil {
		t.line("  what failed last would also fail without zsbx: %s %s (%s, %s)",
			f.Verb, short(f.Path), f.Errno, f.Program)
	}
	if r.More {
		t.line("  more was refused than zsbx records: what came later is not known")
	}
	if names := r.Environment; len(names) > 0 {
		more := ""
		if n := len(names) - shown; shown > 0 && n > 0 {
			names = names[:shown]
			more = fmt.Sprintf(" and %d more, which zsbx profile names", n)
		}
		t.line("  left out of the environment: %s%s (--env NAME passes one)", strings.Join(names, ", "), more)
	}
	return t.lines
}

// text collects lines.
type text struct {
	short func(string) string
	lines []string
}

func (t *text) line(format string, args ...any) {
	t.lines = append(t.lines, terminal.Printable(fmt.Sprintf(format, args...)))
}

// entry writes one refusal in two to four lines.
func (t *text) entry(e *Entry) {
	mark := " "
	if e.Cause {
		mark = "*"
	}
	what := t.short(e.Path)
	if e.To != "" {
		what += " -> " + t.short(e.To)
	}
	told := []string{cmp.Or(e.Errno, "no error"), e.Program}
	if e.Paths > 1 {
		told = append(told, fmt.Sprintf("and %d more there", e.Paths-1))
	}
	if e.Count > 1 {
		told = append(told, fmt.Sprintf("%d times", e.Count))
	}
	if !e.Proved {
		told = append(told, "not proved")
	}
	t.line("%s %-8s %-30s %s", mark, e.Verb, what, strings.Join(told, ", "))
	t.line("           %s", e.Reason)
	t.advice(e)
}

// advice writes what to type about a refusal, or why there is nothing to type.
func (t *text) advice(e *Entry) {
	if e.Secret {
		t.line("           a place of secrets: zsbx proposes no rule for it")
		return
	}
	if e.Harmless != "" {
		t.line("           %s", e.Harmless)
		return
	}
	if e.Flags == "" {
		if e.NoHint != "" {
			t.line("           no rule is proposed: %s", e.NoHint)
		}
		return
	}
	t.line("           %s", e.Flags)
	if e.Hint.Policy != nil {
		t.line("           .zsbx.toml: %s", e.Hint.TOML())
	}
	if e.GivesUp != "" {
		t.line("           that gives up a promise: %s", e.GivesUp)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
