package enforce

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/trace"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

type reported []answer.Act

func (r reported) Report() (out trace.Report) {
	for _, a := range r {
		out.Refusals = append(out.Refusals, trace.Refusal{Act: a, Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EPERM", Proved: true, Count: 1})
	}
	return out
}

// TestRefusalsMacOS: a refusal by Seatbelt is explained by the policy, or as the profile's own
// if the policy allows the act.
func TestRefusalsMacOS(t *testing.T) {
	h := host.Host{OS: "macos", Dir: "/Users/u/p", Home: "/Users/u", Env: []string{"HOME=/Users/u", "PATH=/usr/bin"},
		Lstat: func(p string) (host.Stat, error) {
			return host.Stat{Mode: fs.ModeDir, ID: host.FileID{Dev: 1, Ino: uint64(len(p))}}, nil
		},
		Readlink: func(string) (string, error) { return "", syscall.EINVAL },
	}
	r, err := resolve.Policy(&policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: ".", Access: policy.Read | policy.Write | policy.Exec, Origin: policy.Origin{Source: "--rw"}}}}}, h)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlan(r, Caps{OS: "macos", Seatbelt: true}, nil, Options{Explain: true})
	if why := p.Explains(); why != "" || !p.Seatbelt.Log {
		t.Fatalf("not recorded: %q", why)
	}
	p.recorder = reported{
		{Op: ActOpen, Flags: ActRead, Path: "/Users/u/data/x"},
		{Op: ActOpen, Flags: ActWrite, Path: "/Users/u/p/x"}, // allowed by the policy, so the profile's own
		{Op: answer.Call, Name: "mach-lookup com.apple.x"},
		{Op: answer.Signal, Name: "others"},
	}
	got := p.Refusals()
	for i, flag := range []string{"--ro ~/data/x", "", "", ""} {
		x := got.List[i]
		if x.Answer.Verdict != Refused || x.Answer.By != "seatbelt" || x.Answer.Errno != "EPERM" || x.Answer.Reason == "" || p.Hint(x.Act, &x.Answer).Flags != flag || x.Unknown() {
			t.Errorf("%+v: %+v", x.Act, x.Answer)
		}
	}
	if why := NewPlan(r, Caps{OS: "macos", SeatbeltReason: "nested"}, nil, Options{Explain: true}).Explains(); why == "" {
		t.Error("recorded without Seatbelt")
	}
}
