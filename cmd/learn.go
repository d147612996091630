package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/enforce/why"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
)

// learnFlags are the flags of learn and init.
type learnFlags struct {
	policyFlags

	yes, write, permissive bool

	nothing bool // the command succeeded, and nothing was learnt
}

func newLearn(a *app) command {
	o := &learnFlags{}
	c := &cobra.Command{
		Use:   "learn [flags] [--] COMMAND [ARG...]",
		Short: "Find the policy that a command needs",
		Long: `Run COMMAND under its policy, propose rules for what it was refused, and run it
again with those that are accepted, until it succeeds: at most five times. No run
has more than what was accepted. Then print the rules, as a policy and as flags.

On a terminal each proposal is asked about. --yes accepts all but sockets, as Docker's
may be among them; without either
COMMAND is run once. What COMMAND prints goes to standard error.`,
		Example: `  zsbx learn -- make
  zsbx learn --yes --write -- cargo build
  zsbx learn --yes -- npm ci > policy.toml`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageHint("zsbx learn --help", "no command given")
			}
			return o.run(a, args)
		},
	}
	fs := c.Flags()
	fs.SetInterspersed(false)
	fs.BoolVarP(&o.yes, "yes", "y", false, "accept all proposals but sockets")
	fs.BoolVarP(&o.write, "write", "w", false, "add the rules to "+policy.ProjectFile+" in the working directory")
	fs.BoolVar(&o.permissive, "permissive", false, "run COMMAND once, with all files open but the places of secrets")
	o.policyFlags.add(fs)
	return command{c, func() error { _, err := o.policy(); return err }}
}

// mostRounds is how often a command is run.
const mostRounds = 5

// learner is one use of learn.
type learner struct {
	*learnFlags
	a        *app
	host     *policy.Host
	present  *policy.Resolved // without anything that was learnt
	old      []byte           // the project's policy, before anything ran; nil for none
	terminal bool
	tty      *bufio.Reader // nil where nobody is asked
	out      io.Writer     // the terminal
	needs    []learn.Need  // of the runs that failed
	accepted []learn.Proposal
	pinned   []learn.Proposal // accepted in another form than they were proposed
	asked    map[string]bool  // accepted as they are
	never    []learn.Proposal
	extra    []learn.Proposal // harmless, or not needed
	left     []learn.Left
}

func (o *learnFlags) run(a *app, argv []string) error {
	closeInherited()
	l := &learner{learnFlags: o, a: a, asked: make(map[string]bool)}
	f, ok := a.stderr.(*os.File)
	if l.terminal = ok && term.IsTerminal(int(f.Fd())); l.terminal && !o.yes {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			defer tty.Close()
			l.tty, l.out = bufio.NewReader(tty), tty
		}
	}
	var err error
	if l.old, err = o.projectText(); err != nil {
		return err
	}
	failed := 0
	for round := 1; ; round++ {
		res, needs, err := l.round(argv)
		if err != nil {
			return err
		}
		failed = res.ExitCode()
		if failed != 0 || o.permissive {
			l.needs = append(l.needs, needs...)
		}
		more, err := l.propose()
		if err != nil {
			return err
		}
		was := [2]string{"thing was refused", "things were refused"}
		if o.permissive {
			was = [2]string{"thing was done that the policy does not allow", "things were done that the policy does not allow"}
		}
		a.say.line("learn", "36", fmt.Sprintf("round %d: exit status %d; %s, %s so far", round, failed,
			count(len(needs), was[0], was[1]), count(len(l.accepted), "rule", "rules")))
		if failed == 0 && !o.permissive {
			l.unneeded(needs)
		}
		if o.permissive || failed == 0 || !more || !res.Failed || round == mostRounds || l.tty == nil && !o.yes {
			break
		}
	}
	return errors.Join(l.end(argv, failed), status(failed))
}

// round runs the command with what was accepted, and returns what it was refused.
func (l *learner) round(argv []string) (*sandbox.Result, []learn.Need, error) {
	l.more = nil
	if l.present != nil {
		l.more = learn.Policy(l.accepted, l.present)
	}
	c, err := l.compose(argv)
	if err != nil {
		return nil, nil, err
	}
	opts := l.options(c)
	opts.Args, opts.Stdin, opts.Stdout, opts.Stderr = argv, os.Stdin, os.Stderr, os.Stderr
	opts.Accept, opts.Warn, opts.Job, opts.Explain, opts.KillAfter = l.acceptor(l.a), l.a.warning, true, true, defaultKillAfter
	p := c.Policy
	if l.permissive {
		if p, err = l.open(c, &opts); err != nil {
			return nil, nil, err
		}
	}
	command, err := sandbox.Start(context.Background(), p, opts)
	if err != nil {
		return l.notStarted(c, p, opts, err)
	}
	res, err := command.Wait()
	if l.present == nil {
		l.present, l.host = command.Plan().Policy, &c.host
	}
	got := command.Plan().Refusals()
	if l.a.tellChanges(res.Changes); err != nil {
		return nil, nil, err
	}
	return &res, why.Needs(command.Plan(), &got), nil
}

// notStarted is a round in which the command itself may not be executed.
func (l *learner) notStarted(c *composed, p *policy.Policy, opts sandbox.Options, err error) (*sandbox.Result, []learn.Need, error) {
	plan, planErr := sandbox.Plan(p, opts)
	if planErr != nil {
		return nil, nil, err
	}
	file := sandbox.RefusedExec(plan, opts.Args)
	if file == "" {
		return nil, nil, err
	}
	l.a.say.warn("%v", err)
	if l.present == nil {
		l.present, l.host = plan.Policy, &c.host
	}
	res := &sandbox.Result{Status: syscall.WaitStatus(exitCannotRun << 8), Failed: true}
	return res, []learn.Need{{Path: file, Access: policy.Read | policy.Exec}}, nil
}

// propose makes proposals for all that was refused so far, asks about those that are
// new, and reports whether any was accepted.
func (l *learner) propose() (more bool, err error) {
	before := learn.Policy(l.accepted, l.present).Hash()
	open := slices.DeleteFunc(slices.Clone(l.needs), func(n learn.Need) bool {
		covers := func(q learn.Proposal) bool { return q.Covers(&n) }
		return slices.ContainsFunc(l.pinned, covers) || slices.ContainsFunc(l.never, covers)
	})
	list, left := learn.Propose(open, l.present, l.host)
	had := l.accepted
	l.accepted, l.extra, l.left = nil, nil, left
	preset := false // one is new: what else is needed shows when it is in use
	for _, q := range list {
		switch {
		case preset && q.Preset == "" && q.Path != l.present.Dir:
		case q.Harmless != "":
			l.extra = append(l.extra, q)
		case q.Socket && l.yes: // it may be Docker's
			l.left = append(l.left, learn.Left{Need: q.Needs[0], Why: "what listens there may do anything outside for the command; give the flag if that is meant"})
		case l.tty == nil || l.asked[q.Flag(l.present)]:
			l.accepted = append(l.accepted, q)
		default:
			if err := l.ask(q); err != nil {
				return false, err
			}
		}
		same := func(o learn.Proposal) bool { return o.Preset == q.Preset }
		preset = preset || !l.permissive && q.Preset != "" && slices.ContainsFunc(l.accepted, same) && !slices.ContainsFunc(had, same)
	}
	if preset {
		l.needs = nil
		for _, q := range l.accepted {
			l.needs = append(l.needs, q.Needs...)
		}
	}
	l.accepted = append(l.accepted, l.pinned...)
	return before != learn.Policy(l.accepted, l.present).Hash(), nil
}

// unneeded notes what the command was refused and succeeded without.
func (l *learner) unneeded(needs []learn.Need) {
	list, _ := learn.Propose(needs, l.present, l.host)
	for _, q := range list {
		if q.Harmless == "" {
			q.Harmless = "it succeeds without"
		}
		same := func(o learn.Proposal) bool { return o.Flag(l.present) == q.Flag(l.present) }
		if !slices.ContainsFunc(l.extra, same) {
			l.extra = append(l.extra, q)
		}
	}
}

// end prints or writes what was learnt.
func (l *learner) end(argv []string, failed int) error {
	a := l.a
	said := make(map[learn.Left]bool)
	for _, x := range l.left {
		once := learn.Left{Why: x.Why}
		if x.Need.Socket {
			once.Need = x.Need
		}
		if covered := func(q learn.Proposal) bool { return q.Covers(&x.Need) }; !said[once] && !slices.ContainsFunc(l.accepted, covered) {
			said[once] = true
			a.say.warn("no rule for %s: %s", (&learn.Proposal{Need: x.Need}).Flag(l.present), x.Why)
		}
	}
	if failed != 0 && !l.permissive && (l.tty != nil || l.yes) {
		a.say.warn("the command still fails with what was accepted")
	}
	l.nothing = failed == 0 && len(l.accepted) == 0
	if l.tty == nil && !l.yes && len(l.accepted) > 0 {
		a.say.warn("nobody was asked, so these are proposals; --yes accepts and tries them")
		return l.print()
	}
	if len(l.accepted) > 0 {
		asked, _ := l.policy()
		a.say.hint("zsbx run %s -- %s", learn.Flags(l.accepted, l.present, len(asked.FS.Rules) > 0), quoteArgs(argv))
	}
	if l.write && len(l.accepted) > 0 {
		return l.save()
	}
	return l.print()
}

func (l *learner) print() error {
	text, err := policy.Amend(policy.ProjectFile, nil, learn.Policy(l.accepted, l.present))
	if err != nil {
		return err
	}
	return l.a.printText(strings.TrimLeft(string(text), "\n") + learn.Comments(l.extra, l.present))
}
