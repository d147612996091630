package enforce

import (
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestWithoutLandlock: with the gap for files accepted, the plan still reports what else is
// open (once on Linux 5.10 it reported nothing).
func TestWithoutLandlock(t *testing.T) {
	r := &resolve.Resolved{OS: "linux", Dir: "/tmp", Paths: []resolve.Path{{Path: "/tmp", Mode: os.ModeDir, Access: policy.Read | policy.Write}}}
	want := map[string]Kind{GapFiles: Core, GapZsbxFiles: Hardening, GapMetadata: Hardening, GapIPC: Hardening}
	for _, ns := range []bool{false, true} {
		p := NewPlan(r, Caps{OS: "linux", Arch: "amd64", Seccomp: true, MountNS: ns, Privileged: ns}, nil, Options{Protect: []string{"/tmp/own"}})
		got := map[string]Kind{}
		for _, g := range p.Gaps {
			got[g.Name] = g.Kind
		}
		for name, kind := range want {
			if got[name] != kind {
				t.Errorf("namespaces %v: %s is %q, want %q", ns, name, got[name], kind)
			}
		}
		if p.Mounts != nil {
			t.Errorf("namespaces %v: one is made", ns)
		}
	}
}
