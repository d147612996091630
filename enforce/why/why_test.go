package why

import (
	"testing"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/watch"
	"github.com/zsbx/zsbx/policy"
)

func TestAnchor(t *testing.T) {
	for p, want := range map[string]string{
		"/home/u/.cargo/registry/x/y": "/home/u/.cargo", "/home/u/.cache/go-build/0/1": "/home/u/.cache/go-build", "/home/u/.local/share/app/x": "/home/u/.local/share/app",
		"/home/u/.config/app": "/home/u/.config/app", "/home/u/file": "/home/u/file", "/srv/data/a/b": "/srv/data", "/x": "/x",
	} {
		if got := anchor("/home/u", p); got != want {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
}

// TestReport ranks refusals of a build that failed since it could not write.
func TestReport(t *testing.T) {
	plan := &enforce.Plan{Policy: &policy.Resolved{Home: "/home/u", Dir: "/home/u/p", EnvDrop: []string{"EDITOR_X", "GITHUB_TOKEN"}}}
	one := func(path string, flags answer.Flags, left int, ordinary bool) enforce.Refusal {
		act := answer.Act{Op: answer.Open, Flags: flags, Path: path}
		acc := policy.Read
		if flags&answer.Write != 0 {
			acc = policy.Write
		}
		hint, _ := plan.HintFor(path, acc)
		return enforce.Refusal{
			Refusal: watch.Refusal{Act: act, Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EACCES", Proved: true, Ordinary: ordinary, Count: 1, Left: left, When: 0.5},
			Answer:  enforce.Answer{Verdict: enforce.Refused, By: "landlock", Reason: "no rule", Hint: hint},
		}
	}
	got := &enforce.Refusals{Seen: 100, Proved: true, List: []enforce.Refusal{
		one("/home/u/.gitconfig", answer.Read, 2, false),
		one("/home/u/.cache/b/1", answer.Read, 50, false),
		one("/home/u/.cache/b/2", answer.Write|answer.Creat, 40, false),
		one("/home/u/.cache/b/3", answer.Read, 60, false),
		one("/etc/shadow", answer.Read, 1, true),
		one("/home/u/p/out", answer.Write|answer.Creat, 1, false),
	}}
	r := New(plan, got, 2)
	var order []string
	for _, e := range r.Entries {
		order = append(order, e.Hint.String())
	}
	want := []string{"--rw .", "--rw-noexec ~/.cache/b", "--ro ~/.gitconfig"}
	if len(order) != 3 || order[0] != want[0] || order[1] != want[1] || order[2] != want[2] {
		t.Errorf("order %q, want %q", order, want)
	}
	if !r.Entries[0].Cause || r.Entries[1].Cause || r.Entries[2].Cause || r.Entries[2].Harmless == "" {
		t.Errorf("causes: %+v", r.Entries)
	}
	if r.Ordinary != 1 || len(r.Environment) != 1 || r.Entries[1].Paths != 3 {
		t.Errorf("%+v", r)
	}
	if New(plan, got, 0).Causes() != 0 {
		t.Error("what succeeded has a cause")
	}
}
