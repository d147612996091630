package cmd

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// answer is what check says to one question.
type answer struct {
	Question string        `json:"question"` // read, write, exec, connect or start
	About    string        `json:"about"`    // the path, address or command as it was asked
	Path     string        `json:"path,omitempty"`
	Allowed  bool          `json:"allowed"`
	Errno    string        `json:"errno,omitempty"` // what the command would be told
	Reason   string        `json:"reason"`
	Origin   policy.Origin `json:"origin,omitzero"`
	Hint     string        `json:"hint,omitempty"`
}

// question is one of --read, --write, --exec and --connect, in the order in which they
// were given.
type question struct{ name, about string }

// ask adds the flag that asks one question.
func (o *checkFlags) ask(fs *pflag.FlagSet, name, usage string) {
	fs.Var(&flagValue{kind: "stringArray", set: func(s string) {
		if name == "connect" {
			if _, _, err := parseTarget(s); err != nil {
				o.fail("--connect %s: %v", shell.Quote(s), err)
			}
		}
		o.questions = append(o.questions, question{name, s})
	}}, name, usage)
}

// answer prints whether what was asked for is allowed. The status is 1 when
// any of it is not.
func (o *checkFlags) answer(a *app, plan *enforce.Plan, argv []string, refused error) error {
	var all []answer
	for _, q := range o.questions {
		if q.name == "connect" {
			all = append(all, connectAnswer(plan, q.about))
		} else {
			all = append(all, pathAnswer(plan, q))
		}
	}
	if len(argv) > 0 {
		x := startAnswer(plan, argv)
		if refused != nil {
			x.Allowed, x.Reason, x.Hint = false, refused.Error(), sandbox.GuardHint
		}
		all = append(all, x)
	}
	if err := a.printAnswers(all, plan, o.json); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(x answer) bool { return !x.Allowed }) {
		return status(exitNo)
	}
	return nil
}

// pathAnswer asks the plan what run asks the kernel. To write to a directory is to
// change what is in it, to what is missing to make it.
func pathAnswer(plan *enforce.Plan, q question) answer {
	x := answer{Question: q.name, About: q.about}
	path, st, exists := plan.Policy.Look(q.about)
	if path == "" {
		x.Reason = plan.Policy.Allowed(q.about, policy.Read).Reason
		return x
	}
	act := enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead, Path: path, Mode: st.Mode.Type(), Missing: !exists, Inside: true}
	flag := "--ro "
	switch q.name {
	case "write":
		act.Flags, flag = enforce.ActWrite|enforce.ActCreat, "--rw "
	case "exec":
		act.Op, flag = enforce.ActExec, "--rox "
	}
	x.Path = path
	x.fill(plan.Decide(act))
	if x.Hint != "" {
		x.Hint = flag + shell.Quote(q.about)
	}
	return x
}

// fill takes what the plan decides.
func (x *answer) fill(d enforce.Answer) {
	x.Allowed, x.Reason, x.Origin, x.Hint = d.Verdict != enforce.Refused, d.Reason, d.Origin, d.Hint.String()
	if d.Secret != "" {
		x.Reason += "; " + d.Secret + " holds secrets: zsbx proposes no rule"
	}
	if !x.Allowed {
		x.Errno = d.Errno
	}
}

// connectAnswer answers for an address. Host names play no part: the kernel
// sees ports.
func connectAnswer(plan *enforce.Plan, q string) answer {
	port, path, _ := parseTarget(q)
	x := answer{Question: "connect", About: q}
	act := enforce.Act{Op: enforce.ActConnect, Port: port}
	if path != "" {
		act.Path, _, _ = plan.Policy.Look(path)
		x.Path = act.Path
	}
	x.fill(plan.Decide(act))
	if path != "" && x.Hint != "" {
		x.Hint = "--unix " + shell.Quote(path)
	}
	return x
}

// startAnswer answers whether a command would start: whether it is found, and
// whether all that execve(2) opens for it may be executed.
func startAnswer(plan *enforce.Plan, argv []string) answer {
	x := answer{Question: "start", About: quoteArgs(argv)}
	file, v, err := sandbox.CheckExec(plan, argv)
	x.Path, x.Origin = file, v.Origin
	if err == nil {
		x.Allowed, x.Reason = true, v.Reason
		return x
	}
	x.Reason = err.Error()
	var e *sandbox.Error
	if errors.As(err, &e) {
		x.Hint = e.Hint
	}
	return x
}

// printAnswers prints the answers, and what of them does not hold on this
// machine.
func (a *app) printAnswers(all []answer, plan *enforce.Plan, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			Answers []answer      `json:"answers"`
			Gaps    []enforce.Gap `json:"gaps"`
		}{all, plan.Gaps})
	}
	t := &table{}
	var hints []string
	for _, x := range all {
		hints = append(hints, x.Hint)
		word := "refused"
		if x.Allowed {
			word = "allowed"
		}
		t.row(word, x.Question, x.About, x.Reason)
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	a.say.hints(hints)
	for _, g := range plan.Gaps {
		if g.Kind == enforce.Core {
			a.say.warn("not held on this machine: %s: %s", g.Promise, g.Why)
		}
	}
	return nil
}
