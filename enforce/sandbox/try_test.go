package sandbox

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/policy"
)

// TestTryOnMacOS: macOS has no layers. A policy that asks for one has a gap there, and no command starts. The control:
// a policy that does not ask.
func TestTryOnMacOS(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	h.OS = "macos"
	for writes, want := range map[string]string{"try": "it needs an overlay, which only Linux has", "": ""} {
		p := &policy.Policy{}
		p.FS.Writes.Value = writes
		plan, err := supervise.Plan(p, supervise.Options{Args: []string{"true"}, Host: &h})
		if err != nil {
			t.Fatal(err)
		}
		open, _ := enforce.Unaccepted(plan.Gaps, nil, false)
		open = slices.DeleteFunc(open, func(g enforce.Gap) bool { return g.Name != "try" })
		gaps := gapsOf(open)
		if want == "" {
			if gaps != nil {
				t.Errorf("%q: %+v", writes, gaps)
			}
			continue
		}
		if len(gaps) != 1 || !gaps[0].Core || gaps[0].Why != want {
			t.Fatalf("%q: %+v", writes, gaps)
		}
		err = errorOf(&enforce.GapError{Gaps: open})
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}
