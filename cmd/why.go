package cmd

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/enforce/why"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
	"github.com/zsbx/zsbx/policy/learn"
	"github.com/zsbx/zsbx/policy/shell"
)

func newWhy(a *app) *cobra.Command {
	o := &runFlags{say: a.say}
	o.opts.Explain = true
	c := &cobra.Command{
		Use:   "why [flags] [[--] COMMAND [ARG...]]",
		Short: "Run a command, and say what it was refused",
		Long: `Run COMMAND as zsbx run does, and afterwards say what it was refused: the likely
cause first, with the rule or that there is none, and what to type. It is run
--explain. Each error is the one that the kernel gave.

Without COMMAND: show the run that failed last in this directory, and run it
again when that is confirmed.`,
		Example: `  zsbx why --rw . -- cargo build
  zsbx why
  zsbx why --json --rw . -- make test`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.again(a)
			}
			return o.run(a, args)
		},
	}
	o.add(a, c)
	return c
}

// shownRefusals is how many entries are shown: what comes after is no cause.
const shownRefusals = 6

// tellWhy reports what a command was refused.
func (o *runFlags) tellWhy(a *app, command *sandbox.Command, res *sandbox.Result) error {
	plan := command.Plan()
	got := plan.Refusals()
	r := why.New(plan, &got, res.ExitCode())
	var err error
	if o.explainFile != "" {
		var b strings.Builder
		if err = writeJSON(&b, r, "  "); err == nil {
			err = command.WriteFile("--explain-file", o.explainFile, b.String())
		}
	}
	if a.say.json {
		return errors.Join(err, writeJSON(a.say.w, r, ""))
	}
	w := whyText{say: a.say, plan: plan}
	w.report(r)
	return err
}

// whyText writes a report for people.
type whyText struct {
	say  *voice
	plan *enforce.Plan
	b    strings.Builder
}

func (w *whyText) line(format string, args ...any) {
	w.b.WriteString(strings.TrimRight(printable(fmt.Sprintf(format, args...)), " ") + "\n")
}

func (w *whyText) report(r *why.Report) {
	n := len(r.Entries)
	what := count(n, "thing was", "things were") + " refused"
	switch {
	case n == 0:
		what = "nothing was refused by zsbx"
	case r.Status == 0:
		what += " on the way, and it went on"
	default:
		what += ", " + count(r.Causes(), "looks", "look") + " like the cause"
	}
	w.say.line("why", "36", fmt.Sprintf("exit status %d; %s", r.Status, what))
	for i := range r.Entries[:min(n, shownRefusals)] {
		w.entry(&r.Entries[i])
	}
	if more := n - shownRefusals; more > 0 {
		w.line("  %s less likely: --json or --explain-file has all", count(more, "more is", "more are"))
	}
	if r.More {
		w.line("  there were more than zsbx remembers")
	}
	if r.Ordinary > 0 {
		w.line("  %s refused by file permissions, as without zsbx", count(r.Ordinary, "more call was", "more calls were"))
	}
	if len(r.Environment) > 0 {
		w.line("  left out of the environment: %s (--env NAME passes one)", strings.Join(r.Environment, ", "))
	}
	_, _ = w.say.w.Write([]byte(w.b.String()))
}

// entry writes one thing that was refused, in two to four lines.
func (w *whyText) entry(e *why.Entry) {
	mark := " "
	if e.Cause {
		mark = "*"
	}
	what := w.short(e.Path)
	if e.To != "" {
		what += " -> " + w.short(e.To)
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
	w.line("%s %-8s %-30s %s", mark, e.Verb, what, strings.Join(told, ", "))
	if e.Via != "" {
		w.line("           %s; it is the interpreter of %s", e.Reason, w.short(e.Via))
	} else {
		w.line("           %s", e.Reason)
	}
	switch {
	case e.Secret:
		w.line("           a place of secrets: zsbx proposes no rule for it")
	case e.Hint != (learn.Hint{}) && e.Harmless == "":
		w.line("           %s", e.Hint)
		if toml := e.Hint.TOML(); toml != "" {
			w.line("           .zsbx.toml: %s", toml)
		}
	}
	if e.Harmless != "" {
		w.line("           %s", e.Harmless)
	}
}

// short is a path as people write it.
func (w *whyText) short(p string) string {
	return strings.ReplaceAll(w.plan.Policy.Short(p), "$$", "$")
}

// lastRun is the run that failed last in a directory, as why offers it again: the
// words behind "zsbx run", without the values of variables.
type lastRun struct {
	Dir  string   `json:"dir"`
	Args []string `json:"args"`
}

// lastRunFile is where it is kept, for this user alone: no command can look into
// zsbx's own directory. There are 256, so that two directories may have the same: the
// older run is forgotten.
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
	args := append(withoutValues(a.args[1:n]), a.args[n:]...)
	if file, dir, err := lastRunFile(); err == nil {
		text, _ := json.Marshal(&lastRun{dir, args})
		_ = compose.WriteState(file, text) // without it why needs a command
	}
	if isTerminal(a.stderr) {
		a.say.hint("zsbx why %s", quoteArgs(args))
	}
}

// withoutValues leaves the values of variables out of run's flags.
func withoutValues(flags []string) []string {
	out := append([]string{}, flags...)
	for i, word := range out {
		if i > 0 && out[i-1] == "--env" {
			out[i], _, _ = strings.Cut(word, "=")
		} else if value, ok := strings.CutPrefix(word, "--env="); ok {
			value, _, _ = strings.Cut(value, "=")
			out[i] = "--env=" + value
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
	var l lastRun
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &l) != nil || l.Dir != dir || len(l.Args) == 0 {
		return usageHint("zsbx why --help", "no run failed in %s that is remembered: COMMAND is needed", shell.Quote(dir))
	}
	line := "zsbx why " + quoteArgs(l.Args)
	yes, err := confirm("zsbx: why: " + printable(line) + "\nzsbx: run it again?")
	if err != nil {
		return usageHint(line, "nobody can be asked whether the last failed run is to be run again: there is no terminal")
	}
	if !yes {
		return status(exitFailed)
	}
	a.args = append([]string{"why"}, l.Args...)
	root := newRoot(a, a.args)
	root.SetArgs(a.args)
	return root.Execute()
}
