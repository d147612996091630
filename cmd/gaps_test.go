package cmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/enforce"
)

func TestListGaps(t *testing.T) {
	g := func(name, why string) enforce.Gap { return enforce.Gap{Name: name, Promise: "no " + name, Why: why} }
	for _, c := range []struct {
		gaps []enforce.Gap
		want string
	}{
		{nil, ""},
		{[]enforce.Gap{g("a", "x")}, "no a (a: x)"},
		{[]enforce.Gap{g("a", "x"), g("b", "y")}, "no a (a: x); no b (b: y)"},
		{[]enforce.Gap{g("a", "x"), g("b", "x")}, "no a (a) and no b (b): x"},
		{[]enforce.Gap{g("a", "x"), g("b", "y"), g("c", "y"), g("d", "y")}, "no a (a: x); no b (b), no c (c) and no d (d): y"},
	} {
		if got := listGaps(c.gaps); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestManyGaps: thousands of one kind are a few lines.
func TestManyGaps(t *testing.T) {
	var gaps []enforce.Gap
	for i := range 10_000 {
		gaps = append(gaps, enforce.Gap{Name: "deny", Promise: fmt.Sprint("no access to d", i), Why: "w"})
	}
	if got := listGaps(gaps); len(got) > 1000 || !strings.HasSuffix(got, " and 9990 more: w") {
		t.Errorf("%.1000q", got)
	}
	errs := failures(refuseGaps(gaps), nil)
	if last := errs[len(errs)-1].Error(); len(errs) != mostGaps+1 || last != "can't be enforced here: 9990 more of the kind deny" {
		t.Errorf("%d errors, the last one: %s", len(errs), last)
	}
}

// TestShortGaps: what a machine lacks has room on a terminal, and is named as far as
// there is room.
func TestShortGaps(t *testing.T) {
	var gaps []enforce.Gap
	for _, name := range enforce.GapNames() {
		gaps = append(gaps, enforce.Gap{Name: name, Why: "w"}, enforce.Gap{Name: name, Why: "x"})
		if s := "zsbx: warning: " + shortGaps(gaps); len(s) > 80 || !strings.Contains(s, ": "+gaps[0].Name) || !strings.HasSuffix(s, "(--allow-gap hardening)") {
			t.Errorf("%d: %q", len(s), s)
		}
	}
	if got := shortGaps([]enforce.Gap{{Name: "ipc"}, {Name: "ipc"}, {Name: "metadata"}}); got != "gaps: ipc, metadata (--allow-gap hardening)" {
		t.Error(got)
	}
}
