package cmd

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/why"
)

func newWhy(a *app) *cobra.Command {
	o := &runFlags{}
	o.opts.Explain = true
	c := command("why", func(args []string) error { return o.run(a, args) })
	o.add(a, c)
	return c
}

func (o *runFlags) tellWhy(a *app, command *supervise.Command, res *supervise.Result) error {
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

// shownEntries is how many refusals a report on a terminal lists: the likely causes come first.
const shownEntries = 6

// refusals prints a report. short writes a path as people do.
func (v *voice) refusals(r *why.Report, short func(string) string) {
	v.line("why", "36", r.Headline())
	var b strings.Builder
	for _, line := range r.Lines(short, shownEntries) {
		b.WriteString(line + "\n")
	}
	_, _ = io.WriteString(v.w, b.String())
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
