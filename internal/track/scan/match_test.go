package scan

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/track/proc"
)

// TestReferenceNeverMatches: a probe that claims that every process is a member ends the search
// before it does harm.
func TestReferenceNeverMatches(t *testing.T) {
	for name, c := range map[string]struct {
		claims func(k *simKernel, pid int) bool
		want   error
	}{
		"everybody":      {func(*simKernel, int) bool { return true }, ErrInside},
		"this process":   {func(k *simKernel, pid int) bool { return pid == k.self }, ErrInside},
		"process 1":      {func(_ *simKernel, pid int) bool { return pid == 1 }, ErrReference},
		"all but itself": {func(k *simKernel, pid int) bool { return pid != k.self }, ErrReference},
	} {
		k := newSimKernel(hazards{pids: 100, outsiders: 20, sleepers: 3}, 1)
		h := searcher(k)
		h.Table = &liar{k, c.claims}
		if err := h.Run(context.Background()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if w := k.wronged(); len(w) > 0 {
			t.Errorf("%s: %v came to harm", name, w)
		}
	}
}

// liar claims that every process is a member.
type liar struct {
	*simKernel
	claims func(*simKernel, int) bool
}

func (l *liar) Probe(pid int) Answers {
	if l.claims(l.simKernel, pid) {
		return Answers{1, Allowed, Denied}
	}
	return l.simKernel.Probe(pid)
}

// TestMatch tries all answers.
func TestMatch(t *testing.T) {
	values := []int{-1, 0, 1, 2}
	for _, sandboxed := range values {
		for _, allow := range values {
			for _, deny := range values {
				a := Answers{sandboxed, allow, deny}
				if is := sandboxed == 1 && allow == 0 && deny == 1; is != (a.Match() == Member) {
					t.Errorf("%+v: a match is %v", a, !is)
				}
			}
		}
	}
	for _, c := range []struct {
		a    Answers
		want Match
	}{
		{Answers{0, -1, -1}, Outside}, // under no profile
		{Answers{1, 1, 1}, Outside},   // another profile, or dead
		{Answers{1, 0, 0}, Outside},   // allows all
		{Answers{1, -1, -1}, Unclear},
		{Answers{1, 0, -1}, Unclear},
		{Answers{-1, 0, 1}, Unclear},
		{Answers{0, 0, 1}, Unclear},
	} {
		if got := c.a.Match(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.a, got, c.want)
		}
	}
}

// TestCommandIsAMember: the first process is found before it has applied its profile, but not
// if another process has its pid.
func TestCommandIsAMember(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10}, 3)
	command := k.spawn(k.self, false, "")
	h := searcher(k)
	h.Command = command.ID
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.killedOut, []proc.ID{command.ID}) {
		t.Errorf("killed: %v, want the command alone", k.killedOut)
	}
	other := newSimKernel(hazards{pids: 100, outsiders: 10}, 3)
	reused := other.spawn(other.self, false, "")
	h = searcher(other)
	h.Command = proc.ID{Pid: reused.Pid, Start: reused.Start - 1}
	if err := h.Run(context.Background()); err != nil || len(other.wronged()) > 0 {
		t.Errorf("%v; %v came to harm", err, other.wronged())
	}
}
