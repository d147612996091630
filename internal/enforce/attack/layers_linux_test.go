package attack_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
)

// tryPlan is mountPlan with a layer for what the command writes, which it makes in the place.
func (p *place) tryPlan(t testing.TB) *enforce.Plan {
	t.Helper()
	p.policy.Writes.Value = "try"
	state := p.dir + "/state"
	plan := enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), enforce.Options{Try: mounts.Try{State: state}})
	for i := range plan.Layered() {
		for _, d := range []string{"upper", "work", "lower"} {
			if err := os.MkdirAll(fmt.Sprintf("%s/%d/%s", state, i, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan.UseLayer(state)
	t.Cleanup(func() {
		for i := range plan.Layered() { // the kernel makes a directory there that is closed
			_ = os.Chmod(fmt.Sprintf("%s/%d/work/work", state, i), 0o700)
		}
	})
	return plan
}

// layer is where the first tree's layer has its files.
func (p *place) layer() string { return p.dir + "/state/0/upper" }

func TestLayer(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	plan := p.tryPlan(t)
	if len(plan.Mounts.Overlays) == 0 {
		t.Fatal("no layer is planned")
	}
	script := `echo new >new; echo more >>file; rmdir sub; cat file; ls`
	status, out := p.sh(t, plan, script)
	if want := "secret\nmore\nfile\nnew"; status != 0 || out != want {
		t.Fatalf("status %d, output %q, not %q", status, out, want)
	}
	if _, err := os.Stat(p.in + "/new"); err == nil {
		t.Error("a new file is in the tree")
	}
	for name, want := range map[string]string{p.in + "/file": "secret\n", p.layer() + "/file": "secret\nmore\n"} {
		b, err := os.ReadFile(name)
		if err != nil || string(b) != want {
			t.Errorf("%s has %q (%v), not %q", name, b, err, want)
		}
	}
}
