package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/internal/why"
	"github.com/zsbx/zsbx/policy"
)

// learner is one use of learn or init. from.More is what was accepted.
type learner struct {
	policyFlags

	yes, write, permissive bool

	a    *app
	tty  bool              // the user is asked
	old  []byte            // the project's policy, before anything ran; nil for none
	base *resolve.Resolved // without anything that was learnt

	needs    []learn.Need // of the runs that failed
	answered []learn.Need // those that the user was asked about
	flags    []string     // the flags that the user was asked about
	left     []learn.Need // those without a proposal, and sockets; each reason once

	reached  []rule.Rule // hosts that the last run has reached, if these were observed
	enforces bool        // the last run succeeded: the next one has only the hosts that were learnt

	layer *layer.Layer // what the last run wrote, if that goes to a layer

	closed []string // causes of the last failure for which no rule is ever proposed
}

func newLearn(a *app) *cobra.Command {
	l := &learner{a: a}
	c := command("learn", l.run)
	fs := c.Flags()
	fs.SetInterspersed(false)
	fs.BoolVarP(&l.yes, "yes", "y", false, "accept all proposals except sockets")
	fs.BoolVarP(&l.write, "write", "w", false, "add the rules to "+resolve.ProjectFile+" in the working directory")
	fs.BoolVar(&l.permissive, "permissive", false, "run COMMAND once, with all files open except places of secrets")
	l.policyFlags.add(a, fs)
	return c
}

func (l *learner) run(argv []string) (err error) {
	if len(argv) == 0 {
		l.errs = append(l.errs, usageHint("zsbx learn --help", "no command given"))
	}
	l.tty = isTerminal(l.a.stderr) && !l.yes
	l.from.More = &policy.Policy{}
	l.old, err = l.projectText()
	if err != nil {
		return errors.Join(l.check(), err)
	}
	for round := 1; ; round++ {
		had := l.from.More.Hash()
		res, refused, err := l.round(argv)
		refusals := len(refused)
		if err == nil {
			err = l.proposeAfter(res, refused)
		}
		if err != nil {
			return err
		}
		things := count(refusals+len(l.closed), "thing", "things")
		l.a.say.line("learn", "36",
			fmt.Sprintf("round %d: exit status %d; the policy refuses %s", round, res.ExitCode(), things))
		if l.permissive || l.from.More.Hash() == had || round == 5 || !l.tty && !l.yes {
			return errors.Join(l.end(), status(res.ExitCode()))
		}
	}
}

// round runs the command with what was accepted, and returns what it was refused.
func (l *learner) round(argv []string) (*supervise.Result, []learn.Need, error) {
	c, err := l.compose("", argv, l.check())
	if err != nil {
		return nil, nil, err
	}
	opts := l.options(c)
	opts.Args = argv
	opts.Stdin = os.Stdin
	opts.Stdout = os.Stderr
	opts.Stderr = os.Stderr
	opts.Accept = l.acceptor(l.a)
	opts.Warn = l.a.warning
	opts.Job = true
	opts.Explain = true
	opts.KillAfter = defaultKillAfter
	if err := l.observe(c, &opts); err != nil {
		return nil, nil, err
	}
	if l.permissive {
		if err := l.open(c, &opts); err != nil {
			return nil, nil, err
		}
	}
	if l.layer != nil { // this run begins again
		if err := l.layer.Remove(); err != nil {
			return nil, nil, err
		}
		l.layer = nil
	}
	command, err := supervise.Start(context.Background(), c.Policy, opts)
	if err != nil {
		return nil, nil, err
	}
	res, err := command.Wait()
	l.layer = res.Layer
	l.reached = res.Reached
	plan := command.Plan()
	if l.base == nil {
		l.base = plan.Policy
	}
	l.a.tellChanges(res.Changes)
	l.a.told(command)
	r := why.New(plan, plan.Refusals(), res.ExitCode())
	l.closed = nil
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Cause && len(r.Needs) == 0 && !slices.Contains(l.closed, e.Reason) {
			l.closed = append(l.closed, e.Reason)
		}
	}
	return &res, r.Needs, err
}

// proposeAfter makes proposals after a run: for what was refused, if that may be why it failed, and for the
// hosts that it has reached.
func (l *learner) proposeAfter(res *supervise.Result, refused []learn.Need) error {
	l.enforces = !res.Failed
	needs := l.hostNeeds()
	if res.Failed || l.permissive {
		needs = append(needs, refused...)
	} else if len(needs) == 0 {
		return nil
	}
	return l.propose(needs)
}

// propose makes proposals for what was refused in this failed run and in those before it,
// and asks about the new ones.
func (l *learner) propose(needs []learn.Need) error {
	l.needs = append(l.needs, needs...)
	open := slices.DeleteFunc(slices.Clone(l.needs), func(n learn.Need) bool { return slices.Contains(l.answered, n) })
	list, left := learn.Propose(open, l.base)
	if !l.tty {
		l.from.More = &policy.Policy{}
	}
	for _, q := range list {
		hint := q.Hint(l.base)
		switch {
		case slices.Contains(l.flags, hint.Flags): // names may differ from run to run
		case l.tty:
			if err := l.ask(q); err != nil {
				return err
			}
			l.answered = append(l.answered, q.Needs...)
			l.flags = append(l.flags, hint.Flags)
		case q.Key == "net.unix": // the socket may be Docker's
			q.Why = "whatever listens there may do anything outside for the command; give the flag if you mean that"
			left = append(left, q.Need)
		default:
			l.from.More = policy.Merge(l.from.More, hint.Policy)
		}
	}
	slices.SortStableFunc(left, func(a, b learn.Need) int { return cmp.Compare(a.Why, b.Why) })
	l.left = slices.CompactFunc(left, func(a, b learn.Need) bool { return a.Why == b.Why && a.Key == "" })
	return nil
}

// open opens all files except places of secrets. Recorded is what the policy would have
// refused before.
func (l *learner) open(c *compose.Composed, opts *supervise.Options) (err error) {
	opts.Model, err = supervise.Plan(c.Policy, *opts)
	if err != nil {
		return err
	}
	l.base = opts.Model.Policy
	all := &policy.Policy{}
	_ = all.Put("fs.rw", named("permissive", "/")) // only ports can be wrong
	c.Policy = policy.Merge(c.Policy, all)
	plan, err := supervise.Plan(c.Policy, *opts)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapDeny }) {
		return refusal(supervise.CodeGap, "", "--permissive: places of secrets can't be kept closed here")
	}
	l.a.say.warn("--permissive: COMMAND may change all your files in this run; only places of secrets are closed")
	return nil
}

// end prints or writes what was learnt.
func (l *learner) end() error {
	if l.layer != nil {
		l.a.hintLayer(l.layer)
	}
	for _, x := range l.left {
		l.a.say.warn("no rule for %s: %s", (&learn.Proposal{Need: x}).Hint(l.base).Flags, x.Why)
	}
	for _, reason := range l.closed {
		l.a.say.warn("no rule is proposed: %s", reason)
	}
	if l.write && (l.tty || l.yes) {
		return l.save()
	}
	return l.print()
}

func (l *learner) print() error {
	text, err := policy.Amend(resolve.ProjectFile, nil, l.from.More)
	if len(text) > 0 && !l.tty && !l.yes {
		l.a.say.warn("nobody was asked, so these are proposals; --yes accepts and tries them")
	}
	return errors.Join(err, l.a.printText(strings.TrimLeft(string(text)+l.hostComments(), "\n")))
}

// ask asks about a proposal, and about its parts if the user wants that. It asks again if
// there is nothing narrower, or if nothing wider may be proposed.
func (l *learner) ask(q learn.Proposal) error {
	for queue := []learn.Proposal{q}; len(queue) > 0; {
		q := queue[0]
		answer, err := terminal.Ask(l.question(q))
		if err != nil {
			return errors.New("nothing was written")
		}
		switch answer {
		case "q":
			return errors.New("nothing was written")
		case "a":
			l.from.More = policy.Merge(l.from.More, q.Hint(l.base).Policy)
			queue = queue[1:]
		case "v":
			queue = queue[1:]
		case "n":
			queue = append(q.Narrower(), queue[1:]...)
		case "w":
			queue[0] = q.Wider(l.base)
		}
	}
	return nil
}

// question returns the text with which ask asks about a proposal.
func (l *learner) question(q learn.Proposal) string {
	flags := terminal.Printable(q.Hint(l.base).Flags)
	what := cmp.Or(q.Needs[0].Host, shell.Quote(q.Needs[0].Path))
	if more := len(q.Needs) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("zsbx: learn: %s  (for %s)\n[a]llow, [n]arrower, [w]ider, ne[v]er, [q]uit? ", flags, what)
}
