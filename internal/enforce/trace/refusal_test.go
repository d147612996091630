package trace

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/answer"
)

// TestRefusals: an entry counts as proved only if each of its refusals was. A refusal by the
// plan is not ordinary because file modes refused the same before.
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

// TestRefusalsBound: ordinary refusals leave space for those by the plan. If there are more of
// these than are remembered, the report says so.
func TestRefusalsBound(t *testing.T) {
	for _, ordinary := range []bool{true, false} {
		var r refusals
		for i := range maxRefusals {
			r.add(Refusal{Act: answer.Act{Op: answer.Open, Path: fmt.Sprint("/", i)}, Errno: "EACCES", Ordinary: ordinary, Count: 1}, 1)
		}
		last := Refusal{Act: answer.Act{Op: answer.Open, Path: "/x"}, Errno: "EROFS", Count: 1}
		r.add(last, 1)
		got := r.Report()
		has := slices.ContainsFunc(got.Refusals, func(x Refusal) bool { return x.Act.Path == "/x" })
		if has != ordinary || got.More == ordinary || ordinary && got.Refusals[0].Count != maxRefusals {
			t.Errorf("ordinary %t: there is more: %t, the last one is there: %t", ordinary, got.More, has)
		}
	}
}
