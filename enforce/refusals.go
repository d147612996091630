package enforce

import (
	"cmp"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/watch"
)

// Refusal is what a command was refused, and what the plan says of it.
type Refusal struct {
	watch.Refusal
	Answer Answer
}

// Refusals is all that was recorded of a command.
type Refusals struct {
	List   []Refusal
	Seen   int  // system calls that were looked at
	Proved bool // each error was seen to be given by the kernel
	More   bool // there were more than are remembered
}

type recorder interface{ Report() watch.Report }

// Explains says why nothing can be recorded for this plan, or "".
func (p *Plan) Explains() string {
	switch {
	case p.Caps.OS == "macos":
		if p.Seatbelt == nil {
			return "Seatbelt is needed, which says what it refuses"
		}
		return ""
	case p.Seccomp == nil:
		return "seccomp is needed to see what the command does: " + orUnknown(p.Caps.SeccompReason)
	case p.watched == nil:
		return "a supervisor is needed to see what the command does: " + cmp.Or(p.Caps.SeccompNotifyReason, "none was asked for")
	}
	return ""
}

// Refusals is what was recorded so far of the command that the plan was put on last,
// if Options.Explain asked for it.
func (p *Plan) Refusals() Refusals {
	if p.recorder == nil {
		return Refusals{}
	}
	got := p.recorder.Report()
	out := Refusals{Seen: got.Seen, Proved: got.Proved, More: got.More}
	for i := range got.Refusals {
		r := &got.Refusals[i]
		ans := p.explain(&r.Act, r.Answer)
		if p.Caps.OS == "macos" {
			ans = p.logged(&r.Act)
		}
		out.List = append(out.List, Refusal{*r, ans})
	}
	return out
}

// logged explains what Seatbelt said that it refused.
func (p *Plan) logged(a *Act) Answer {
	out := Answer{Verdict: Refused, Errno: "EPERM", Reason: "closed by the profile; no rule opens it"}
	if a.Op != answer.Call && a.Op != answer.Signal {
		if by := p.Decide(*a); by.Verdict == Refused {
			out = by
		}
	}
	out.By = "seatbelt"
	return out
}
