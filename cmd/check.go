package cmd

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/guard"
	"github.com/zsbx/zsbx/internal/selftest"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/internal/units"
	"github.com/zsbx/zsbx/policy"
)

type checkFlags struct {
	policyFlags

	questions []question
	trust     string // --trust: trustShow, or the hash of the policy to trust
	selfTest  bool
}

func newCheck(a *app) *cobra.Command {
	o := &checkFlags{policyFlags: policyFlags{mistakes: &a.mistakes}}
	c := command("check", func(args []string) error { return o.run(a, args) })
	fs := c.Flags()
	open := enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead, Inside: true}
	o.ask(fs, "read", open, "may `PATH` be read?")
	open.Flags = enforce.ActWrite | enforce.ActCreat
	o.ask(fs, "write", open, "may `PATH` be written?")
	o.ask(fs, "exec", enforce.Act{Op: enforce.ActExec, Flags: enforce.ActRead, Inside: true}, "may `PATH` be executed?")
	o.ask(fs, "connect", enforce.Act{Op: enforce.ActConnect},
		"may `HOST:PORT`, or the Unix socket PATH, be connected to?")
	o.flag(fs, "trust", "boolfunc", "",
		"show what the project's policies ask for; --trust=SHA256 trusts the one with that content",
		func(s string) error {
			o.trust = strings.ToLower(s)
			return nil
		})
	fs.Lookup("trust").NoOptDefVal = trustShow
	fs.BoolVar(&o.selfTest, "self-test", false, "attack a sandboxed process, harmlessly, and print what was refused")
	fs.BoolVar(&a.say.json, "json", false, "print JSON")
	o.policyFlags.add(a, fs)
	return c
}

func (o *checkFlags) check(argv []string) error {
	o.failIf(o.trust != "" && len(argv) > 0,
		"--trust can't be used with a command; it takes its value with =: --trust=SHA256")
	o.excludes("trust", "read", "write", "exec", "connect")
	return o.policyFlags.check()
}

func (o *checkFlags) run(a *app, argv []string) error {
	flagErr := o.check(argv)
	if o.trust != "" && flagErr == nil {
		return o.trustProject(a)
	}
	c, err := o.compose("", argv, flagErr)
	if err != nil {
		return err
	}
	opts := o.options(c)
	caps := enforce.Probe()
	enforce.ProbeNamespaces(&caps)
	opts.Caps = &caps
	opts.Trial = true
	plan, err := a.plan(c, opts, argv)
	if err != nil {
		return err
	}
	if len(o.questions) > 0 || len(argv) > 0 {
		return o.answer(a, plan, argv, guard.Check(c.Policy, c.Host, argv))
	}
	return o.machine(a, plan, c.Files)
}

// aim reads the value of --connect: HOST:PORT or [HOST]:PORT, or the path of a socket.
func (q *question) aim(s string) (err error) {
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, ".") {
		return nil
	}
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return errors.New("must be HOST:PORT or the path of a socket")
	}
	q.file = ""
	q.act.Host = s[:i]
	q.act.Port, err = units.ParsePort(s[i+1:])
	return err
}

// answer is check's answer to one question.
type answer struct {
	Question string        `json:"question"` // read, write, exec, connect or start
	About    string        `json:"about"`    // the path, address or command as it was asked
	Path     string        `json:"path,omitempty"`
	Allowed  bool          `json:"allowed"`
	Errno    string        `json:"errno,omitempty"` // the error that the command would get
	Reason   string        `json:"reason"`
	Origin   policy.Origin `json:"origin,omitzero"`
	Hint     string        `json:"hint,omitempty"`
	GivesUp  string        `json:"gives_up,omitempty"` // the promise that the hint gives up
}

// question is one of --read, --write, --exec and --connect, in the order in which they
// were given.
type question struct {
	answer
	act  enforce.Act
	file string // "" for a port
}

// ask adds the flag that asks one question.
func (o *checkFlags) ask(fs *pflag.FlagSet, name string, act enforce.Act, usage string) {
	o.each(fs, name, usage, func(s string) (err error) {
		q := question{answer{Question: name, About: s}, act, s}
		if name == "connect" {
			err = q.aim(s)
		}
		o.questions = append(o.questions, q)
		return err
	})
}

// answer prints an answer to each question. The status is 1 if any answer is no.
func (o *checkFlags) answer(a *app, plan *enforce.Plan, argv []string, guard error) error {
	all := each(o.questions, func(q question) answer { return q.answered(plan) })
	if len(argv) > 0 {
		all = append(all, o.startAnswer(plan, argv, guard))
	}
	t := &table{}
	for _, x := range all {
		t.row(map[bool]string{true: "allowed", false: "refused"}[x.Allowed], x.Question, x.About, x.Reason)
		if x.GivesUp != "" {
			t.row("", "", "", "the hint gives up a promise: "+x.GivesUp)
		}
	}
	err := a.show(map[string]any{"answers": all, "gaps": plan.Gaps}, t)
	if !a.say.json {
		a.say.hints(each(all, func(x answer) string { return x.Hint }))
		notCore := func(g enforce.Gap) bool { return g.Kind != enforce.Core }
		a.warnGaps(slices.DeleteFunc(slices.Clone(plan.Gaps), notCore))
	}
	if slices.ContainsFunc(all, func(x answer) bool { return !x.Allowed }) {
		err = cmp.Or(err, status(exitNo))
	}
	return err
}

// answered asks the plan what run would ask the kernel. Writing to a directory means
// changing its entries. Writing to a path that is missing means making it.
func (q question) answered(plan *enforce.Plan) answer {
	x := q.answer
	if q.act.Port == 0 {
		path, st, exists := plan.Policy.Look(q.file)
		if path == "" {
			x.Reason = plan.Policy.Allowed(q.file, policy.Read).Reason
			return x
		}
		x.Path = path
		q.act.Path = path
		q.act.Mode = st.Mode.Type()
		q.act.Missing = !exists
	}
	d := plan.Decide(q.act)
	hint := plan.Hint(q.act, &d)
	x.Allowed = d.Verdict != enforce.Refused
	x.Reason = d.Reason
	x.Origin = d.Origin
	x.Hint = hint.Typed(plan.Policy)
	x.GivesUp = hint.GivesUp
	if d.Secret != "" {
		x.Reason += "; " + plan.Policy.HoldsSecrets(d.Secret) + ": zsbx proposes no rule"
	}
	if x.Allowed && q.act.Op == enforce.ActExec {
		if part, err := supervise.CheckParts(plan, x.Path); err != nil {
			f := problems(err)[0]
			x.Allowed = false
			x.Errno = part.Errno
			x.Reason = f.Message
			x.Origin = policy.Origin{}
			x.Hint = f.Hint
			return x
		}
	}
	if !x.Allowed {
		x.Errno = d.Errno
	}
	if q.act.Missing && q.act.Flags&enforce.ActCreat == 0 { // a rule for a missing path would be an error
		x.Hint = ""
		x.GivesUp = ""
	}
	return x
}

// startAnswer answers whether a command would start: it must be found, all that
// execve(2) opens for it must be executable, every promise must be kept or its gap
// accepted, and guard must be nil.
func (o *checkFlags) startAnswer(plan *enforce.Plan, argv []string, guard error) answer {
	file, v, err := supervise.CheckExec(plan, argv)
	open, _ := enforce.Unaccepted(plan.Gaps, o.opts.AllowGaps, o.opts.Strict)
	if err == nil && open != nil && o.fallback == "deny" {
		v.Origin = policy.Origin{}
		err = &enforce.GapError{Gaps: plan.Counted(open)}
	}
	if guard != nil {
		v.Origin = policy.Origin{}
		err = guard
	}
	x := answer{
		Question: "start",
		About:    quoteArgs(argv),
		Path:     file,
		Origin:   v.Origin,
		Reason:   v.Reason,
		Allowed:  err == nil,
	}
	if all := problems(err); all != nil {
		x.Reason = strings.Join(each(all, func(f problem) string { return f.Message }), "; ")
		hints := each(all, func(f problem) string { return f.Hint })
		x.Hint = strings.Join(slices.Compact(slices.DeleteFunc(hints, func(h string) bool { return h == "" })), "\n")
	}
	return x
}

type jsonTracker struct {
	Name      track.Kind `json:"name"`
	Guarantee string     `json:"guarantee"`
	Why       string     `json:"why,omitempty"` // why it is nothing stronger
}

// machine prints what this machine enforces of the policy. Each promise is tried in
// throw-away processes. The status is 1 if a promise of the policy can't be kept, or if
// a trial fails although the kernel claims to enforce the promise.
func (o *checkFlags) machine(a *app, plan *enforce.Plan, files []string) error {
	proofs, err := selftest.Run(plan.Caps)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	tracker := bestTracker(plan)
	verdict := o.verdict(plan, proofs)
	t := &table{}
	t.line("%s", verdict)
	t.section("promises, each tried with and without the restrictions")
	for _, p := range proofs {
		row := []string{map[bool]string{true: "held", false: "NOT HELD"}[p.Held], p.Name, p.Promise, p.Means}
		if o.selfTest {
			row = append(row, p.Detail)
		}
		t.row(row...)
	}
	t.section("tracked by")
	t.row(string(tracker.Name), tracker.Guarantee)
	if tracker.Why != "" {
		t.row("", tracker.Why)
	}
	t.enforced(plan)
	t.list("policies without mistakes", files)
	err = a.show(map[string]any{
		"verdict": verdict, "os": plan.Caps.OS, "arch": plan.Caps.Arch, "policies": files, "proofs": proofs,
		"layers": plan.Layers(), "gaps": plan.Gaps, "tracker": tracker,
	}, t)
	if err == nil && o.openGaps(plan) != nil {
		err = status(exitNo)
	}
	for _, p := range proofs {
		if !p.Held && !p.Gap && !known(plan, p) {
			a.say.warn("the kernel claims to enforce this, but did not: %s: %s", p.Promise, p.Detail)
			err = cmp.Or(err, status(exitNo))
		}
	}
	return err
}

// verdict says in one line whether a command would be started with this policy, and what is open.
func (o *checkFlags) verdict(plan *enforce.Plan, proofs []selftest.Proof) string {
	broken := slices.ContainsFunc(proofs, func(p selftest.Proof) bool { return !p.Held && !p.Gap && !known(plan, p) })
	open := o.openGaps(plan)
	gaps := gapNames(plan.Gaps)
	switch {
	case broken:
		return "NOT SAFE: a trial below failed although the kernel claims to enforce the promise"
	case open != nil && o.fallback == "deny":
		return "no command is started with this policy, as these promises can't be kept here: " +
			strings.Join(open, ", ")
	case len(gaps) > 0:
		return "ready, but not all is enforced here: " + strings.Join(gaps, ", ")
	}
	return "ready: this machine keeps every promise of this policy"
}

// known reports whether a promise is one of the plan's gaps.
func known(plan *enforce.Plan, p selftest.Proof) bool {
	return slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == p.Name })
}

// openGaps names the gaps that keep a command from being started.
func (o *checkFlags) openGaps(plan *enforce.Plan) []string {
	open, _ := enforce.Unaccepted(plan.Gaps, o.opts.AllowGaps, o.opts.Strict)
	return gapNames(open)
}

// bestTracker returns the tracker of a command under the plan.
func bestTracker(plan *enforce.Plan) jsonTracker {
	c, err := track.Best(plan.Landlock != nil && plan.Landlock.Scoped != 0)
	if err != nil {
		return jsonTracker{Why: err.Error()}
	}
	return jsonTracker{Name: c.Kind, Guarantee: c.Kind.Guarantee(plan.Confines()), Why: c.Why}
}
