package enforce

import (
	"io/fs"
	"testing"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/watch"
	"github.com/zsbx/zsbx/policy"
)

type reported []answer.Act

func (r reported) Report() (out watch.Report) {
	for _, a := range r {
		out.Refusals = append(out.Refusals, watch.Refusal{Act: a, Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EPERM", Proved: true, Count: 1})
	}
	return out
}

// TestRefusalsMacOS explains what Seatbelt refused: by the policy where that says so,
// and as the profile's where it does not.
func TestRefusalsMacOS(t *testing.T) {
	r := &policy.Resolved{OS: "macos", Dir: "/Users/u/p", Home: "/Users/u", Net: policy.ResolvedNet{Mode: policy.NetOpen}, Paths: []policy.Path{
		{Path: "/Users/u/p", Access: policy.Read | policy.Write | policy.Exec, Mode: fs.ModeDir, Rule: policy.Rule{Path: ".", Origin: policy.Origin{Source: "--rw"}}},
	}}
	p := NewPlanWith(r, Caps{OS: "macos", Seatbelt: true}, nil, Options{Explain: true})
	if why := p.Explains(); why != "" || !p.Seatbelt.Log {
		t.Fatalf("not recorded: %q", why)
	}
	p.recorder = reported{
		{Op: ActOpen, Flags: ActRead, Path: "/Users/u/data/x"},
		{Op: ActOpen, Flags: ActWrite, Path: "/Users/u/p/x"}, // allowed by the policy: the profile's own
		{Op: ActCall, Name: "mach-lookup com.apple.x"},
		{Op: ActSignal, Name: "others"},
	}
	got := p.Refusals()
	for i, flag := range []string{"--ro", "", "", ""} {
		x := got.List[i]
		if x.Answer.Verdict != Refused || x.Answer.By != "seatbelt" || x.Answer.Errno != "EPERM" || x.Answer.Reason == "" || x.Answer.Hint.Flag != flag || x.Unknown() {
			t.Errorf("%+v: %+v", x.Act, x.Answer)
		}
	}
	if why := NewPlanWith(r, Caps{OS: "macos", SeatbeltReason: "nested"}, nil, Options{Explain: true}).Explains(); why == "" {
		t.Error("recorded without Seatbelt")
	}
}
