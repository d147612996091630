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

	"github.com/zsbx/zsbx/enforce"
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
may be among them; without either COMMAND is run once. What COMMAND prints goes to standard error.`,
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
	return command{c, o.check}
}

// mostRounds is how often a command is run.
const mostRounds = 5

// learner is one use of learn.
type learner struct {
	learn.Session
	*learnFlags
	a        *app
	old      []byte // the project's policy, before anything ran; nil for none
	terminal bool
	tty      *bufio.Reader // nil where nobody is asked
	out      io.Writer     // the terminal
}

func (o *learnFlags) run(a *app, argv []string) error {
	l := &learner{Session: learn.Session{Sockets: !o.yes, Once: o.permissive}, learnFlags: o, a: a}
	f, ok := a.stderr.(*os.File)
	if l.terminal = ok && term.IsTerminal(int(f.Fd())); l.terminal && !o.yes {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			defer tty.Close()
			l.tty, l.out, l.Ask = bufio.NewReader(tty), tty, l.ask
		}
	}
	var err error
	if l.old, err = o.projectText(); err != nil {
		return err
	}
	was := [2]string{"thing was refused", "things were refused"}
	if o.permissive {
		was = [2]string{"thing was done that the policy does not allow", "things were done that the policy does not allow"}
	}
	for round := 1; ; round++ {
		res, refused, err := l.round(argv)
		if err != nil {
			return err
		}
		failed, needs := res.ExitCode(), refused
		if failed == 0 && !o.permissive {
			needs = nil
		}
		more, err := l.Propose(needs)
		if err != nil {
			return err
		}
		a.say.line("learn", "36", fmt.Sprintf("round %d: exit status %d; %s, %s so far", round, failed,
			count(len(refused), was[0], was[1]), count(len(l.Accepted), "rule", "rules")))
		if failed == 0 && !o.permissive {
			l.Succeeded(refused)
		}
		if o.permissive || failed == 0 || !more || !res.Failed || round == mostRounds || l.tty == nil && !o.yes {
			return errors.Join(l.end(argv, failed), status(failed))
		}
	}
}

// round runs the command with what was accepted, and returns what it was refused.
func (l *learner) round(argv []string) (*sandbox.Result, []learn.Need, error) {
	l.more = nil
	if l.Resolved != nil {
		l.more = l.Policy()
	}
	c, err := l.compose("", argv, l.check)
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
		return l.notStarted(p, opts, err)
	}
	res, err := command.Wait()
	l.began(command.Plan())
	got := command.Plan().Refusals()
	if l.a.tellChanges(res.Changes); err != nil {
		return nil, nil, err
	}
	return &res, why.Needs(command.Plan(), &got), nil
}

// began keeps the policy of the first round.
func (l *learner) began(plan *enforce.Plan) {
	if l.Resolved == nil {
		l.Resolved = plan.Policy
	}
}

// notStarted is a round in which the command itself may not be executed.
func (l *learner) notStarted(p *policy.Policy, opts sandbox.Options, err error) (*sandbox.Result, []learn.Need, error) {
	plan, planErr := sandbox.Plan(p, opts)
	if planErr != nil {
		return nil, nil, err
	}
	file := sandbox.RefusedExec(plan, opts.Args)
	if file == "" {
		return nil, nil, err
	}
	l.a.say.warn("%v", err)
	l.began(plan)
	res := &sandbox.Result{Status: syscall.WaitStatus(exitCannotRun << 8), Failed: true}
	return res, []learn.Need{{Path: file, Access: policy.Read | policy.Exec}}, nil
}

// end prints or writes what was learnt.
func (l *learner) end(argv []string, failed int) error {
	a := l.a
	for _, x := range l.Left() {
		a.say.warn("no rule for %s: %s", (&learn.Proposal{Need: x.Need}).Hint(l.Resolved), x.Why)
	}
	if failed != 0 && !l.permissive && (l.tty != nil || l.yes) {
		a.say.warn("the command still fails with what was accepted")
	}
	l.nothing = failed == 0 && len(l.Accepted) == 0
	if l.tty == nil && !l.yes && len(l.Accepted) > 0 {
		a.say.warn("nobody was asked, so these are proposals; --yes accepts and tries them")
		return l.print()
	}
	if len(l.Accepted) > 0 {
		a.say.hint("zsbx run %s -- %s", learn.Flags(l.Accepted, l.Resolved, len(l.asked.FS.Rules) > 0), quoteArgs(argv))
	}
	if l.write && len(l.Accepted) > 0 {
		return l.save()
	}
	return l.print()
}

func (l *learner) print() error {
	text, err := policy.Amend(policy.ProjectFile, nil, l.Policy())
	if err != nil {
		return err
	}
	return l.a.printText(strings.TrimLeft(string(text), "\n") + learn.Comments(l.Extra, l.Resolved))
}

// ask asks about a proposal, and about what it is made of where that is wanted.
func (l *learner) ask(q learn.Proposal) error {
	changed := false
	for queue := []learn.Proposal{q}; len(queue) > 0; {
		q, note := &queue[0], ""
		fmt.Fprintf(l.out, "zsbx: learn: %s  (for %s)\n[a]llow, [n]arrower, [w]ider, ne[v]er, [q]uit? ", printable(q.Hint(l.Resolved).String()), l.about(q))
		answer, err := l.tty.ReadString('\n')
		switch answer = strings.ToLower(strings.TrimSpace(answer)); {
		case err != nil, answer == "q", answer == "quit":
			return &failure{status: exitFailed, err: errors.New("nothing was written")}
		case answer == "a", answer == "allow":
			l.Accept(*q, changed)
			queue = queue[1:]
		case answer == "v", answer == "never":
			l.Refuse(*q)
			queue = queue[1:]
		case answer == "n", answer == "narrower":
			if parts := q.Narrower(); parts != nil {
				queue, changed = append(parts, queue[1:]...), true
			} else {
				note = "nothing narrower would do"
			}
		case answer == "w", answer == "wider":
			if up, ok := q.Wider(l.Resolved); ok {
				queue[0], changed = up, true
			} else {
				note = "zsbx proposes nothing wider"
			}
		}
		if note != "" {
			fmt.Fprintf(l.out, "zsbx: learn: %s\n", note)
		}
	}
	return nil
}

// about says what a proposal is for.
func (l *learner) about(q *learn.Proposal) string {
	n := &q.Needs[0]
	what := n.Path
	if n.Port != 0 {
		what = fmt.Sprintf("TCP port %d", n.Port)
	}
	if len(q.Needs) > 1 {
		what += fmt.Sprintf(" and %d more", len(q.Needs)-1)
	}
	return printable(what)
}

// open is a policy with all files open but the places of secrets. What is recorded is
// what the present policy would refuse.
func (l *learner) open(c *composed, opts *sandbox.Options) (*policy.Policy, error) {
	model, err := sandbox.Plan(c.Policy, *opts)
	if err != nil {
		return nil, err
	}
	all := policy.Rule{Path: "/", Access: policy.Read | policy.Write | policy.Exec, Origin: policy.Origin{Source: "--permissive"}}
	p := policy.Merge(c.Policy, &policy.Policy{FS: policy.FS{Rules: []policy.Rule{all}}})
	plan, err := sandbox.Plan(p, *opts)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapDeny }) {
		return nil, &failure{code: codeGap, status: exitFailed, err: errors.New("--permissive: places of secrets can't be kept closed here")}
	}
	l.a.say.warn("--permissive: COMMAND may change all files of yours in this run; only places of secrets are closed")
	opts.Model = model
	l.began(model)
	return p, nil
}
