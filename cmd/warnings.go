package cmd

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
	"github.com/zsbx/zsbx/policy/shell"
)

// acceptor answers whether a command may start although promises can't be kept, as
// --fallback says; nil is no.
func (o *policyFlags) acceptor(a *app) func([]enforce.Gap) bool {
	return map[string]func([]enforce.Gap) bool{
		"warn":   func(gaps []enforce.Gap) bool { a.warnGaps(gaps); return true },
		"prompt": askGaps,
	}[o.fallback]
}

// warning says what package sandbox has to say. Of what this machine lacks that is
// one short line, whatever the policy; what a rule ran into is told in full.
func (a *app) warning(w sandbox.Warning) {
	var lacks, asked []enforce.Gap
	var hints []string
	for _, g := range w.Gaps {
		if g.Origin == (policy.Origin{}) {
			lacks = append(lacks, g)
		} else {
			asked, hints = append(asked, g), append(hints, g.Hint)
		}
	}
	if len(lacks) > 0 {
		a.say.warn("%s", shortGaps(lacks))
	}
	a.warnGaps(asked)
	if w.Text != "" {
		a.say.warn("%s", w.Text)
	}
	a.say.hints(append(hints, w.Hint))
}

// shortGaps names gaps, and the flag that accepts them, in a line that has room
// on a terminal of 80 columns. zsbx check has the rest.
func shortGaps(gaps []enforce.Gap) string {
	names := gapNames(gaps)
	said := strings.Join(names, ", ")
	const room = 80 - len("zsbx: warning: gaps:  (--allow-gap "+enforce.AllHardening+")")
	for n := len(names) - 1; len(said) > room && n > 0; n-- {
		said = fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
	}
	return "gaps: " + said + " (--allow-gap " + enforce.AllHardening + ")"
}

// gapNames are the names of gaps, each once.
func gapNames(gaps []enforce.Gap) []string {
	return slices.Compact(slices.Sorted(slices.Values(each(gaps, func(g enforce.Gap) string { return g.Name }))))
}

// mostGaps is how many gaps of a kind are said one by one: thousands of denials would
// make megabytes of messages.
const mostGaps = 10

// gapLines are what is not kept, with the name that --allow-gap takes, who asked, and
// why, some of every kind. For each there is something to type, or "".
func gapLines(gaps []enforce.Gap) (lines, hints []string) {
	said, more := make(map[string]int), 0
	for _, g := range gaps {
		if said[g.Name]++; said[g.Name] > mostGaps {
			more++
			continue
		}
		about := strings.TrimSuffix(g.Name+", "+g.Origin.String(), ", ")
		lines = append(lines, fmt.Sprintf("%s (%s): %s", g.Promise, about, g.Why))
		hints = append(hints, cmp.Or(g.Hint, "--allow-gap "+g.Name))
	}
	if more > 0 {
		lines, hints = append(lines, fmt.Sprintf("%d more: zsbx check", more)), append(hints, "")
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
	question := "zsbx: not enforced here: " + strings.Join(each(lines, printable), "\nzsbx: not enforced here: ")
	yes, _ := confirm(question + "\nzsbx: run the command all the same?")
	return yes
}

// confirm asks on the terminal for yes or no.
func confirm(question string) (bool, error) {
	answer, err := terminal.Ask(question + " [y/N] ")
	return err == nil && (answer == "y" || answer == "yes"), err
}

// tellStillWritable says before a run what run says: that a rule is for nothing.
func (a *app) tellStillWritable(plan *enforce.Plan) {
	if why := plan.StillWritable(); why != "" && !a.say.json {
		a.say.warn("%s", why)
	}
}

// tellHome says in one line what was written to a private home and is gone, and
// which flags keep it the next time: those of directories, where a rule is not unwise.
func (a *app) tellHome(plan *enforce.Plan, home []string) {
	if home == nil {
		return
	}
	flags, unwise := "", plan.Policy.Unwise()
	for _, p := range home[:min(len(home), mostNamed)] {
		dir, isDir := strings.CutSuffix(p, "/")
		if isDir && unwise(dir, policy.Write, true) == "" {
			flags += "--rw " + shell.QuotePath(plan.Policy.Short(dir)) + " "
		}
	}
	a.say.warn("written to the private home directory, and gone: %s", few(each(home, shell.Quote)))
	if flags != "" {
		a.say.hint("%s--create-missing", flags)
	}
}

// tellOf says what a command did beside what it was to do. The plan is nil for one
// that was only tracked.
func (a *app) tellOf(plan *enforce.Plan, res *sandbox.Result, argv []string) {
	a.tellChanges(res.Changes)
	if plan == nil {
		return
	}
	a.tellHome(plan, res.Home)
	if res.Report.Kept {
		a.say.warn("what was left running can still change files that programs outside act upon; zsbx will not report that")
	}
	if res.Failed {
		a.tellOwn(plan, argv)
	}
}

// tellChanges says in one line what of the protected set, or of what is denied,
// is not as it was before the command, and to look at it.
func (a *app) tellChanges(changes []enforce.Change) {
	if len(changes) == 0 {
		return
	}
	var names []string
	for _, c := range changes {
		what := "changed"
		if c.New {
			what = "new"
		}
		names = append(names, shell.Quote(c.Path)+" ("+what+")")
	}
	a.say.warn("look at what came while the command ran, is denied to it or acted upon outside: %s", few(names))
}

// tellOwn tells of a file on the command line that the command did not see, after it
// has failed: "no such file" is all that it could say, and nothing was refused.
func (a *app) tellOwn(plan *enforce.Plan, argv []string) {
	for _, arg := range argv[1:] {
		own := plan.Mounts.PrivateIn(filepath.Clean(arg))
		if _, err := os.Lstat(arg); err == nil && own != "" {
			a.say.warn("%s was the command's own: %s was not there", own, shell.Quote(arg))
			a.say.hint("%s", learn.NewHint("fs.ro", arg, false).Typed(plan.Policy))
			return
		}
	}
}
