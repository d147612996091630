package cmd

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/policy"
)

// acceptor returns what decides whether a command may start although promises can't be
// kept, as --fallback says. nil means no.
func (o *policyFlags) acceptor(a *app) func([]enforce.Gap) bool {
	switch o.fallback {
	case "warn":
		return func(gaps []enforce.Gap) bool {
			a.warnGaps(gaps)
			return true
		}
	case "prompt":
		return askGaps
	}
	return nil
}

// warning prints a warning of package supervise. What this machine lacks gets one short
// line, whatever the policy. A gap that a rule ran into is printed in full.
func (a *app) warning(w supervise.Warning) {
	var lacks, asked []enforce.Gap
	var hints []string
	for _, g := range w.Gaps {
		if g.Origin == (policy.Origin{}) {
			lacks = append(lacks, g)
		} else {
			asked = append(asked, g)
			hints = append(hints, g.Hint)
		}
	}
	if len(lacks) > 0 {
		a.say.warn("%s", shortGaps(lacks))
	}
	a.warnGaps(asked)
	if w.Text != "" {
		a.say.warn("%s", w.Text)
	}
	if w.Refused != "" {
		a.say.refused(w.Refused, w.Failed)
	}
	if w.Untold != nil {
		a.tellUntold(w.Untold)
		hints = append(hints, hintUntold(w.Untold))
	}
	a.say.hints(append(hints, w.Hint))
}

// shortGaps names gaps, and the flag that accepts them, in a line that fits on a terminal
// of 80 columns. zsbx check prints the rest.
func shortGaps(gaps []enforce.Gap) string {
	names := gapNames(gaps)
	said := strings.Join(names, ", ")
	const room = 80 - len("zsbx: warning: gaps:  (--allow-gap "+enforce.AllHardening+")")
	for n := len(names) - 1; len(said) > room && n > 0; n-- {
		said = fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
	}
	return "gaps: " + said + " (--allow-gap " + enforce.AllHardening + ")"
}

// gapNames returns the names of gaps, each once.
func gapNames(gaps []enforce.Gap) []string {
	return slices.Compact(slices.Sorted(slices.Values(each(gaps, func(g enforce.Gap) string { return g.Name }))))
}

// mostGaps is how many gaps of a kind are printed one by one. Thousands of denials would
// make megabytes of messages.
const mostGaps = 10

// gapLines returns a line for each gap, up to mostGaps of a kind: the promise, the name
// that --allow-gap takes, who asked, and why. hints has what to type for each line, or "".
func gapLines(gaps []enforce.Gap) (lines, hints []string) {
	said := make(map[string]int)
	more := 0
	for _, g := range gaps {
		said[g.Name]++
		if said[g.Name] > mostGaps {
			more++
			continue
		}
		about := strings.TrimSuffix(g.Name+", "+g.Origin.String(), ", ")
		line := fmt.Sprintf("%s (%s): %s", g.Promise, about, g.Why)
		if g.GivesUp != "" {
			line += "; open if that is accepted: " + g.GivesUp
		}
		lines = append(lines, line)
		hints = append(hints, cmp.Or(g.Hint, "--allow-gap "+g.Name))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%d more: zsbx check", more))
		hints = append(hints, "")
	}
	return lines, hints
}

func (a *app) warnGaps(gaps []enforce.Gap) {
	lines, _ := gapLines(gaps)
	for _, line := range lines {
		a.say.warn("not enforced here: %s", line)
	}
}

// askGaps asks whether to go on with less. Without a terminal the answer is no.
func askGaps(gaps []enforce.Gap) bool {
	lines, _ := gapLines(gaps)
	question := ""
	for _, line := range lines {
		question += "zsbx: not enforced here: " + terminal.Printable(line) + "\n"
	}
	yes, _ := confirm(question + "zsbx: run the command anyway?")
	return yes
}

// confirm asks on the terminal for yes or no.
func confirm(question string) (bool, error) {
	answer, err := terminal.Ask(question + " [y/N] ")
	return err == nil && (answer == "y" || answer == "yes"), err
}

// plan returns what would be enforced, and prints the warnings of run, except with --json.
func (a *app) plan(c *compose.Composed, opts supervise.Options, argv []string) (*enforce.Plan, error) {
	opts.Warn = a.warning
	if a.say.json {
		opts.Warn = func(supervise.Warning) {}
	}
	plan, err := supervise.Plan(c.Policy, opts)
	if err != nil {
		return nil, err
	}
	for _, w := range plan.Warnings(argv) {
		opts.Warn(supervise.Warning{Text: w.Error(), Hint: w.Hint})
	}
	return plan, nil
}

// tellHome prints in one line what was written to a private home and is gone. A hint
// has the flags that keep directories the next time, where package learn proposes that.
func (a *app) tellHome(plan *enforce.Plan, home []string) {
	if home == nil {
		return
	}
	var dirs []string
	for _, p := range home[:min(len(home), mostNamed)] {
		if dir, isDir := strings.CutSuffix(p, "/"); isDir {
			dirs = append(dirs, dir)
		}
	}
	a.say.warn("written to the private home directory, and gone: %s", few(each(home, shell.Quote)))
	a.say.hints([]string{learn.Keep(plan.Policy, dirs).Typed(plan.Policy)})
}

// tellOf warns about what a command changed, left, or did not see. The plan is nil if the
// command was only tracked.
func (a *app) tellOf(plan *enforce.Plan, res *supervise.Result, argv []string) {
	a.tellChanges(res.Changes)
	if plan == nil {
		return
	}
	a.tellHome(plan, res.Home)
	if res.Failed {
		a.tellUnseen(plan, argv)
	}
}

// told leaves what could not be said about a command for the next one.
func (a *app) told(c *supervise.Command) {
	if a.say.unsaid() {
		c.Unsaid()
	} else {
		c.Told()
	}
}

// tellChanges prints in one line what is protected or denied, and is new or changed since
// the command was started.
func (a *app) tellChanges(changes []enforce.Change) {
	if len(changes) > 0 {
		a.say.warn("look at these files, which changed while the command ran: "+
			"they were denied to it, or other programs run or trust them: %s", fewChanges(changes))
	}
}

func fewChanges(changes []enforce.Change) string {
	return few(each(changes, func(c enforce.Change) string {
		what := "changed"
		switch {
		case c.New:
			what = "new"
		case c.Closed:
			what = "not all of it can be seen"
		}
		return shell.Quote(c.Path) + " (" + what + ")"
	}))
}

// tellUntold warns about what changed since a command was started whose zsbx was killed or could
// not say it, or that left processes running.
func (a *app) tellUntold(u *supervise.Untold) {
	if u.Unread {
		a.say.warn("what the command of session %s changed can't be told: %v", u.Session, u.Err)
		return // zsbx reap removes it
	}
	why := "the zsbx of session " + u.Session + " was killed before it reported: "
	command := "its command"
	switch {
	case u.Unsaid:
		why = "the zsbx of session " + u.Session + " could not write what it had to say: "
	case u.Kept:
		why = ""
		command = "the command of the kept session " + u.Session
	}
	if u.Err != nil {
		a.say.warn("%swhat changed since %s was started can't be told: %v", why, command, u.Err)
	}
	if len(u.Changes) > 0 {
		a.say.warn("%slook at these files, which changed since %s was started: "+
			"they were denied to it, or other programs run or trust them: %s", why, command, fewChanges(u.Changes))
	}
	if a.say.unsaid() {
		return // the next one tells it
	}
	if err := u.Told(); err != nil {
		a.say.warn("%v", err)
	}
}

// hintUntold has what ends a session that still runs, or removes what can't be read.
func hintUntold(u *supervise.Untold) string {
	switch {
	case u.Lives:
		return "zsbx reap " + u.Session
	case u.Unread:
		return "zsbx reap --stale"
	}
	return ""
}

// propose prints what to type so that needs are met, or why nothing is proposed.
func (a *app) propose(plan *enforce.Plan, needs ...learn.Need) {
	hint, why := learn.Ask(plan.Policy, needs...)
	if why != "" {
		a.say.warn("no rule is proposed: %s", why)
	}
	a.offer(plan.Policy, hint)
}

// offer prints a hint, and what it gives up.
func (a *app) offer(r *resolve.Resolved, hint learn.Hint) {
	if hint.GivesUp != "" {
		a.say.warn("the hint gives up a promise: %s", hint.GivesUp)
	}
	a.say.hints([]string{hint.Typed(r)})
}

// tellUnseen warns about a file on the command line that a failed command did not see,
// because its directory was a private one. The command could only say "no such file", and
// nothing was refused.
func (a *app) tellUnseen(plan *enforce.Plan, argv []string) {
	for _, arg := range append(shellWords(argv), argv[1:]...) {
		if rest, ok := strings.CutPrefix(arg, "~/"); ok { // in the line of a shell
			arg = path.Join(plan.Policy.Home, rest)
		}
		private := plan.Mounts.PrivateIn(filepath.Clean(arg))
		if private == filepath.Clean(arg) {
			continue // the command saw a directory there, though another one
		}
		if _, err := os.Lstat(arg); err == nil && private != "" {
			a.say.warn("the command had a private %s: %s was not in it", private, shell.Quote(arg))
			a.propose(plan, learn.NeedOf(plan.Policy, arg, policy.Read))
			return
		}
	}
}
