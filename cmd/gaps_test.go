package cmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
)

// TestWarnGaps: each gap has its name and its reason.
func TestWarnGaps(t *testing.T) {
	var b strings.Builder
	a := &app{say: voice{w: &b}}
	a.warnGaps([]enforce.Gap{{Name: "a", Promise: "no a", Why: "x"}, {Name: "b", Promise: "no b", Why: "y"}})
	want := "zsbx: warning: not enforced here: no a (a): x\nzsbx: warning: not enforced here: no b (b): y\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestGuaranteeWithoutLimits: a command whose files can't be limited can move itself
// to another control group.
func TestGuaranteeWithoutLimits(t *testing.T) {
	if x := bestTracker(&enforce.Plan{}); x.Guarantee != x.Name.Guarantee(false) {
		t.Errorf("%s: %s", x.Name, x.Guarantee)
	}
}

// TestManyGaps: thousands of gaps of one kind are a few lines, and hide no other kind.
func TestManyGaps(t *testing.T) {
	var gaps []enforce.Gap
	for i := range 10_000 {
		gaps = append(gaps, enforce.Gap{Name: "deny", Promise: fmt.Sprint("no access to d", i), Why: "w"})
	}
	gaps = append(gaps, enforce.Gap{Name: "limits", Promise: "no more memory", Why: "w"})
	errs := problems(&enforce.GapError{Gaps: gaps})
	if last := errs[len(errs)-1].Message; len(errs) != mostGaps+2 || last != "can't be enforced here: 9990 more: zsbx check" {
		t.Errorf("%d errors, the last one: %s", len(errs), last)
	}
	if limits := errs[len(errs)-2]; limits.Hint != "--allow-gap limits" {
		t.Errorf("%v, hint %q", limits, limits.Hint)
	}
}

// TestShortGaps: the gaps of a machine fit on a line of a terminal, which names as many as there
// is room for.
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
	if got := shortGaps([]enforce.Gap{{Name: "terminals"}, {Name: "ipc"}, {Name: "metadata"}, {Name: "orphans"}, {Name: "own-files"}}); got !=
		"gaps: ipc, metadata, orphans and 2 more (--allow-gap hardening)" {
		t.Error(got)
	}
}
