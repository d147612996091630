package cmd

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// answer is what check says to one question.
type answer struct {
	Question string     `json:"question"` // read, write, exec, connect or start
	About    string     `json:"about"`    // the path, address or command as it was asked
	Path     string     `json:"path,omitempty"`
	Allowed  bool       `json:"allowed"`
	Reason   string     `json:"reason"`
	Origin   jsonOrigin `json:"origin,omitzero"`
	Hint     string     `json:"hint,omitempty"`
}

// answer prints whether what was asked for is allowed. The status is 1 when
// any of it is not.
func (o *checkFlags) answer(a *app, plan *enforce.Plan, argv []string) error {
	r := plan.Policy
	var all []answer
	for _, q := range []struct {
		name  string
		paths []string
		acc   policy.Access
		flag  string
	}{
		{"read", o.read, policy.Read, "--ro"},
		{"write", o.write, policy.Write, "--rw"},
		{"exec", o.execute, policy.Exec, "--rox"},
	} {
		for _, p := range q.paths {
			all = append(all, pathAnswer(plan, q.name, p, q.flag, r.Allowed(p, q.acc)))
		}
	}
	for _, q := range o.connect {
		all = append(all, connectAnswer(r, q))
	}
	if len(argv) > 0 {
		all = append(all, startAnswer(r, argv))
	}
	if err := a.printAnswers(all, plan, o.json); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(x answer) bool { return !x.Allowed }) {
		return status(exitNo)
	}
	return nil
}

func pathAnswer(plan *enforce.Plan, question, path, flag string, v policy.Verdict) answer {
	x := answer{
		Question: question, About: path, Path: v.Path, Allowed: v.Allowed,
		Reason: v.Reason, Origin: originJSON(v.Origin),
	}
	if own := plan.Mounts.Own(v.Path); own != "" && v.Deny == nil {
		x.Allowed, x.Reason = v.Path == own || question == "write", own+" is the command's own, and ends with it"
		if !x.Allowed {
			x.Reason = own + " is the command's own: what lies there outside is not to be seen"
		}
		x.Origin = jsonOrigin{}
	}
	if !x.Allowed && v.Deny == nil && v.Path != "" {
		x.Hint = flag + " " + shell.Quote(path)
	}
	return x
}

// connectAnswer answers for an address. Host names play no part: the kernel
// sees ports.
func connectAnswer(r *policy.Resolved, q string) answer {
	t, _ := parseTarget(q)
	x := answer{Question: "connect", About: q}
	if t.path == "" {
		v := r.Connect(t.port)
		x.Allowed, x.Reason, x.Origin = v.Allowed, v.Reason, originJSON(v.Origin)
		if !v.Allowed && v.Origin.Source != "--no-net" { // which can't stand beside it
			x.Hint = fmt.Sprintf("--connect-tcp %d", t.port)
		}
		return x
	}
	x.Path = r.Allowed(t.path, policy.Read).Path
	for _, s := range r.Net.Unix {
		if s.Path == x.Path {
			x.Allowed, x.Origin = true, originJSON(s.Rule.Origin)
			x.Reason = fmt.Sprintf("the socket is allowed by %q (%s)", s.Rule.Path, s.Rule.Origin)
			return x
		}
	}
	x.Reason = "no rule allows this socket, unless a process of the session itself listens on it"
	x.Hint = "--unix " + shell.Quote(t.path)
	return x
}

// startAnswer answers whether a command would start: whether it is found, and
// whether all that execve(2) opens for it may be executed.
func startAnswer(r *policy.Resolved, argv []string) answer {
	x := answer{Question: "start", About: quoteArgs(argv)}
	file, err := lookPath(argv[0], commandEnv(r.Env, r.Dir))
	if err != nil {
		x.Reason = err.Error()
		return x
	}
	x.Path = file
	for _, p := range execParts(file) {
		v := r.Allowed(p.file, policy.Read|policy.Exec)
		if err := executable(p.file); err != nil || !v.Allowed {
			errno := syscall.EACCES
			if missing(err) {
				errno = syscall.ENOENT
			}
			f := explainExec(file, errno, mayExecIn(r))
			x.Reason, x.Hint, x.Origin = f.Error(), f.hint, originJSON(v.Origin)
			return x
		}
		if x.Reason == "" {
			x.Reason, x.Origin = v.Reason, originJSON(v.Origin)
		}
	}
	x.Allowed = true
	return x
}

// mayExecIn asks the policy.
func mayExecIn(r *policy.Resolved) mayExec {
	return func(file string) bool { return r.Allowed(file, policy.Read|policy.Exec).Allowed }
}

// printAnswers prints the answers, and what of them does not hold on this
// machine.
func (a *app) printAnswers(all []answer, plan *enforce.Plan, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			Answers []answer  `json:"answers"`
			Gaps    []jsonGap `json:"gaps"`
		}{all, gapsJSON(plan.Gaps)})
	}
	t := &table{}
	for _, x := range all {
		word := "refused"
		if x.Allowed {
			word = "allowed"
		}
		t.row(word, x.Question, x.About, x.Reason)
	}
	var b strings.Builder
	t.write(&b)
	if err := a.printText(b.String()); err != nil {
		return err
	}
	said := ""
	for _, x := range all {
		if x.Hint != "" && x.Hint != said {
			a.say.hint("%s", x.Hint)
			said = x.Hint
		}
	}
	for _, g := range plan.Gaps {
		if g.Kind == enforce.Core {
			a.say.warn("not enforced here: %s: %s", g.Promise, g.Why)
		}
	}
	return nil
}
