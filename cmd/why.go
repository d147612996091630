package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/internal/why"
)

func newWhy(a *app) *cobra.Command {
	o := &runFlags{}
	o.opts.Explain = true
	c := command("why", func(args []string) error { return o.run(a, args) })
	o.add(a, c)
	return c
}

func (o *runFlags) tellWhy(a *app, command *sandbox.Command, res *sandbox.Result) error {
	plan := command.Plan()
	r := why.New(plan, plan.Refusals(), res.ExitCode())
	var b strings.Builder
	err := writeJSON(&b, r, "  ")
	if err == nil && o.explainFile != "" {
		err = command.WriteFile("--explain-file", o.explainFile, b.String())
	}
	if a.say.json {
		return errors.Join(err, writeJSON(a.say.w, r, ""))
	}
	a.say.refusals(r, plan.Policy.Short)
	return err
}

// refusals prints a report. short writes a path as people do.
func (v *voice) refusals(r *why.Report, short func(string) string) {
	const shown = 6 // likely causes come first
	n := len(r.Entries)
	what := "no refusal by zsbx was seen"
	if n > 0 {
		what = count(n, "thing was", "things were") + " refused, " + count(r.Causes, "looks", "look") + " like the cause"
	}
	v.line("why", "36", fmt.Sprintf("exit status %d; %s", r.Status, what))
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	for i := range r.Entries[:min(n, shown)] {
		tellEntry(line, &r.Entries[i], short)
	}
	if more := n - shown; more > 0 {
		line("  %s less likely: --json or --explain-file has all", count(more, "more is", "more are"))
	}
	if r.Ordinary > 0 {
		more := ""
		if n > 0 {
			more = "more "
		}
		line("  %s refused, and would also be without zsbx", count(r.Ordinary, more+"call was", more+"calls were"))
	}
	if f := r.Last; f != nil {
		line("  what failed last would also fail without zsbx: %s %s (%s, %s)", f.Verb, short(f.Path), f.Errno, f.Program)
	}
	if r.More {
		line("  more was refused than zsbx records: what came later is not known")
	}
	if names := r.Environment; len(names) > 0 {
		more := ""
		if n := len(names) - shown; n > 0 {
			names, more = names[:shown], fmt.Sprintf(" and %d more, which zsbx profile names", n)
		}
		line("  left out of the environment: %s%s (--env NAME passes one)", strings.Join(names, ", "), more)
	}
	_, _ = io.WriteString(v.w, b.String())
}

// tellEntry prints one refusal in two to four lines.
func tellEntry(line func(string, ...any), e *why.Entry, short func(string) string) {
	mark, what := " ", short(e.Path)
	if e.Cause {
		mark = "*"
	}
	if e.To != "" {
		what += " -> " + short(e.To)
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
	line("%s %-8s %-30s %s", mark, e.Verb, what, strings.Join(told, ", "))
	line("           %s", e.Reason)
	switch {
	case e.Secret:
		line("           a place of secrets: zsbx proposes no rule for it")
	case e.Harmless != "":
		line("           %s", e.Harmless)
	case e.Flags != "":
		line("           %s", e.Flags)
		if e.Hint.Policy != nil {
			line("           .zsbx.toml: %s", e.Hint.TOML())
		}
		if e.GivesUp != "" {
			line("           that gives up a promise: %s", e.GivesUp)
		}
	case e.NoHint != "":
		line("           no rule is proposed: %s", e.NoHint)
	}
}

// withoutValues removes the values of variables from run's flags: messages end up in logs
// that others read.
func withoutValues(flags []string) []string {
	out := slices.Clone(flags)
	for i, word := range out {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--env="), "=")
		if i > 0 && out[i-1] == "--env" {
			out[i] = name
		} else if strings.HasPrefix(word, "--env=") {
			out[i] = "--env=" + name
		}
	}
	return out
}
