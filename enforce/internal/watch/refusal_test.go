package watch

import (
	"testing"

	"github.com/zsbx/zsbx/enforce/internal/answer"
)

// TestRefusals: what is told as one thing counts as proved only if each time was, and
// what file modes refused first is no ordinary failure when the plan refuses it later.
func TestRefusals(t *testing.T) {
	var r refusals
	x := Refusal{Act: answer.Act{Op: answer.Open, Path: "/x"}, Errno: "EACCES", Proved: true, Count: 1}
	modes, unseen, other := x, x, x
	modes.Ordinary, unseen.Proved, other.Act.Path = true, false, "/y"
	for _, y := range []Refusal{modes, x, unseen, other} {
		r.add(y, 1)
	}
	got := r.Report()
	if len(got.Refusals) != 3 || got.Proved {
		t.Fatalf("%+v", got)
	}
	if a, b, c := &got.Refusals[0], &got.Refusals[1], &got.Refusals[2]; !a.Ordinary || b.Ordinary || b.Count != 2 || b.Proved || !c.Proved {
		t.Errorf("%+v", got.Refusals)
	}
}
