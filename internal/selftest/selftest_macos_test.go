package selftest

import (
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestMacSelfTestActs makes the acts of macOS's self-test on this system. Each succeeds without
// restrictions, which is the control there, and is refused under them if this kernel can keep
// the promise.
func TestMacSelfTestActs(t *testing.T) {
	caps := enforce.Probe()
	enforce.ProbeNamespaces(&caps)
	if caps.OS == "linux" {
		testkit.NeedLandlock(t, caps.Landlock, 6, caps.LandlockReason)
		if !caps.MountNS {
			testkit.Lacks(t, testkit.UserNS, caps.MountReason)
		}
	}
	asked := 0
	made, err := newScene()
	defer made.end()
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := made.attackMac(caps, func(pid int) []Proof { asked = pid; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(proofs) != len(macTrials()) || asked <= 0 {
		t.Errorf("%d proofs of %d, asked about process %d", len(proofs), len(macTrials()), asked)
	}
	for _, p := range proofs {
		if !p.Held {
			t.Errorf("%s: %s", p.Promise, p.Detail)
		}
	}
}

// TestMacSelfTestNames: each promise that the self-test proves has the name of a gap.
func TestMacSelfTestNames(t *testing.T) {
	for _, trial := range macTrials() {
		if !slices.Contains(enforce.GapNames(), trial.name) {
			t.Errorf("%s is no gap's name", trial.name)
		}
	}
}
