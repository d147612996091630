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
	watch.Report
	List []Refusal // those of the Report
}

type recorder interface{ Report() watch.Report }

// Explains says why nothing can be recorded for this plan, or "".
func (p *Plan) Explains() string {
	switch {
	case p.Seatbelt != nil, p.watched != nil:
		return ""
	case p.Caps.OS == "macos":
		return "Seatbelt is needed, which says what it refuses"
	}
	return "a supervisor is needed to see what the command does: " + cmp.Or(p.Caps.SeccompReason, p.Caps.SeccompNotifyReason, "none was asked for")
}

// Refusals is what was recorded so far of the command that the plan was put on last,
// if Options.Explain asked for it.
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
		out.List = append(out.List, Refusal{x, ans})
	}
	return out
}

// logged explains what Seatbelt said that it refused.
func (p *Plan) logged(a *Act) Answer {
	out := Answer{Verdict: Refused, Errno: "EPERM", Reason: "closed by the profile; no rule opens it"}
	if by := p.Decide(*a); by.Verdict == Refused && a.Op != answer.Call {
		out = by
	}
	out.By = "seatbelt"
	return out
}
