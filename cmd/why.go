package cmd

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/enforce/why"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
	"github.com/zsbx/zsbx/policy/shell"
)

func newWhy(a *app) *cobra.Command {
	o := &runFlags{say: a.say}
	o.opts.Explain = true
	c := command("why", func(args []string) error {
		if len(args) == 0 {
			return o.again(a)
		}
		return o.run(a, args)
	})
	o.add(a, c)
	return c
}

// tellWhy reports what a command was refused.
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

// refusals says what is in a report; short writes a path as people do.
func (v *voice) refusals(r *why.Report, short func(string) string) {
	const shown = 6 // what comes after is no cause
	n := len(r.Entries)
	what := "nothing was refused by zsbx"
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
		line("  %s refused by file permissions, as without zsbx", count(r.Ordinary, "more call was", "more calls were"))
	}
	if len(r.Environment) > 0 {
		line("  left out of the environment: %s (--env NAME passes one)", strings.Join(r.Environment, ", "))
	}
	_, _ = io.WriteString(v.w, b.String())
}

// tellEntry says in two to four lines one thing that was refused.
func tellEntry(line func(string, ...any), e *why.Entry, short func(string) string) {
	mark, what := " ", short(e.Path)
	if e.Cause {
		mark = "*"
	}
	if e.To != "" {
		what += " -> " + short(e.To)
	}
	told := []string{e.Errno, e.Program}
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
	}
}

// lastRunFile is where the run is kept that failed last in this directory: as a list of
// the directory and the words behind "zsbx run", without the values of variables. It is
// for this user alone: no command can look into zsbx's own directory. There are 256, so
// that two directories may have the same: the older run is forgotten.
func lastRunFile() (file, dir string, err error) {
	h, err := policy.ThisHost()
	if err == nil {
		sum := sha256.Sum256([]byte(h.Dir))
		file, err = compose.StateFile(&h, "last", string(sum[:1]))
	}
	return file, h.Dir, err
}

// afterFailure keeps the run that failed, and on a terminal says how to find out why.
func (o *runFlags) afterFailure(a *app, argv []string) {
	n := len(a.args) - len(argv)
	args := append(withoutValues(a.args[1:n]), argv...)
	if file, dir, err := lastRunFile(); err == nil {
		_ = compose.WriteState(file, object.Of(append([]string{dir}, args...))) // without it why needs a command
	}
	if isTerminal(a.stderr) {
		a.say.hint("zsbx why %s", quoteArgs(args))
	}
}

// withoutValues leaves the values of variables out of run's flags: what is said ends in
// logs that others read.
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

// again offers the run that failed last in this directory.
func (o *runFlags) again(a *app) error {
	file, dir, err := lastRunFile()
	if err != nil {
		return err
	}
	var kept []string
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &kept) != nil || len(kept) < 2 || kept[0] != dir {
		return usageHint("zsbx why --help", "no run failed in %s that is remembered: COMMAND is needed", shell.Quote(dir))
	}
	line := "zsbx why " + quoteArgs(kept[1:])
	yes, err := confirm("zsbx: why: " + printable(line) + "\nzsbx: run it again?")
	switch {
	case err != nil:
		return usageHint(line, "nobody can be asked whether the last failed run is to be run again: there is no terminal")
	case !yes:
		return status(exitFailed)
	}
	a.args = append([]string{"why"}, kept[1:]...)
	root := newRoot(a, a.args)
	root.SetArgs(a.args)
	return root.Execute()
}
