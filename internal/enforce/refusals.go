package enforce

import (
	"cmp"
	"io/fs"
	"path"
	"slices"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/trace"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Refusal is something that a command was refused, with the plan's explanation.
type Refusal struct {
	trace.Refusal
	Answer Answer
}

// Refusals has all that was recorded about a command.
type Refusals struct {
	trace.Report
	List []Refusal // those of the Report, explained
}

type recorder interface{ Report() trace.Report }

// Explains returns why nothing can be recorded for this plan, or "".
func (p *Plan) Explains() string {
	switch {
	case p.Seatbelt != nil, p.recording != nil:
		return ""
	case p.Caps.OS == "macos":
		return "Seatbelt is needed, which logs what it refuses"
	}
	why := cmp.Or(p.Caps.SeccompReason, p.Caps.SeccompNotifyReason, "none was asked for")
	return "a broker is needed to see what the command does: " + why
}

// Refusals returns what was recorded so far about the last command that the plan confined, if
// Options.Explain asked for it.
func (p *Plan) Refusals() Refusals {
	if p.recorder == nil {
		return Refusals{}
	}
	out := Refusals{Report: p.recorder.Report()}
	for _, x := range out.Refusals {
		ans := p.explain(&x.Act, x.Answer)
		if p.Caps.OS == "macos" {
			ans = p.logged(&x.Act)
		}
		if x.Verdict != nil {
			ans = p.refusedHost(&x)
		}
		out.List = append(out.List, Refusal{x, ans})
	}
	return out
}

// logged explains a refusal that Seatbelt logged.
func (p *Plan) logged(a *Act) Answer {
	out := Answer{Reason: "closed by the profile; no rule opens it"}
	out.Verdict = Refused
	out.Errno = "EPERM"
	if by := p.Decide(*a); by.Verdict == Refused && a.Op != answer.Call {
		out = by
	}
	out.By = answer.Seatbelt
	return out
}

// refusedHost explains why a host outside was refused.
func (p *Plan) refusedHost(x *trace.Refusal) Answer {
	out := Answer{Answer: x.Answer, Reason: x.Verdict.Text}
	if x.Verdict.Wanted == nil && x.Verdict.Denial == nil {
		return out // it is about what the program sent, not about a rule
	}
	said := p.Policy.Net.Says(x.Verdict)
	out.Reason = said.Reason
	out.Origin = said.Origin
	if wanted := x.Verdict.Wanted; wanted != nil {
		out.Needs = []learn.Need{{Key: "net.hosts", Host: wanted.String(), Private: wanted.Private}}
	}
	return out
}

// Hint returns what would allow a refused act: package learn's rules, and what opens a file that
// stays protected under them. It is empty if the act would still be refused.
func (p *Plan) Hint(act Act, a *Answer) learn.Hint {
	rules, left := learn.Rules(a.Needs, p.Policy)
	if len(rules) == 0 || len(left) > 0 {
		return a.Hint
	}
	hint, _ := learn.Ask(p.Policy, a.Needs...)
	var all []*learn.Proposal
	for i := range rules {
		all = append(all, &rules[i])
	}
	then := p.With(all...)
	if then == nil {
		return hint
	}
	still := then.Decide(act)
	if still.Verdict != Refused || still.Needs != nil {
		return hint
	}
	if still.Hint.Flags == "" {
		return learn.Hint{}
	}
	return hint.And(still.Hint)
}

// With returns the plan with proposed rules added, so that Decide can say whether they would
// help: protected files stay protected in a tree that a rule makes writable. It returns nil if
// the rules make no tree writable.
func (p *Plan) With(rules ...*learn.Proposal) *Plan {
	r := *p.Policy
	r.Paths = slices.Clip(r.Paths)
	for _, q := range rules {
		if q != nil && q.Dir && q.Access&policy.Write != 0 {
			rule := policy.Rule{Origin: policy.Origin{Source: "--rw"}}
			r.Paths = append(r.Paths, resolve.Path{Path: q.Path, Access: q.Access, Mode: fs.ModeDir, Rule: rule})
		}
	}
	if p.Landlock == nil || len(r.Paths) == len(p.Policy.Paths) {
		return nil
	}
	return NewPlan(&r, p.Caps, r.Host(), Options{})
}

// needed returns the files, ports and sockets that rules would have to allow for a refused act.
// With gains a move would give the file rights.
func (p *Plan) needed(a *Act, gains bool) (out []learn.Need) {
	n := learn.Need{Path: a.Path, Dir: a.Mode.IsDir(), Port: a.Port, Access: access(a, 0)}
	switch a.Op {
	case answer.Signal, answer.Trace, answer.Call:
		return nil
	case ActConnect:
		n.Access = 0
		n.Key = "net.connect_tcp"
		if a.Path != "" {
			n.Key = "net.unix"
		} else if a.Port == 0 || p.Policy.Net.Mode == resolve.NetHosts {
			return nil // an abstract socket, or a host: see explainRefused
		}
	case answer.Bind:
		n.Change = a.Path != ""
		if !n.Change {
			n.Access = 0
			n.Key = "net.bind_tcp"
		}
	case answer.Rename, answer.Exchange, answer.Link:
		if gains {
			const all = policy.Read | policy.Write | policy.Exec
			return []learn.Need{{Path: path.Dir(a.Path), Dir: true, Access: all}}
		}
		for _, name := range []string{a.Path, a.To} {
			if !p.Policy.Allowed(path.Dir(name), policy.Write).Allowed && (a.Op != answer.Link || name == a.To) {
				out = append(out, learn.Need{Path: name, Dir: n.Dir, Access: policy.Write, Change: true})
			}
		}
		return p.outside(out)
	case answer.Make, answer.Remove:
		n.Change = true
	case answer.TempFile:
		n.Path = path.Join(a.Path, "file")
		n.Dir = false
		n.Change = true
	case ActOpen:
		n.Change = a.Missing && a.Flags&ActCreat != 0
	}
	return p.outside([]learn.Need{n})
}

// outside leaves out what has no path, such as a pipe or a removed file, and the command's own
// temporary directory.
func (p *Plan) outside(needs []learn.Need) []learn.Need {
	return slices.DeleteFunc(needs, func(n learn.Need) bool {
		return n.Path != "" && (n.Path[0] != '/' || p.Policy.TempDir != "" && host.Within(n.Path, p.Policy.TempDir))
	})
}
