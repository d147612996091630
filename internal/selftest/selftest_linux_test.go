package selftest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/selftest"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestSelfTest: promises without a gap are proved, and the rest are not.
func TestSelfTest(t *testing.T) {
	caps := enforce.Probe()
	proofs, err := selftest.Run(caps)
	if err != nil {
		t.Fatal(err)
	}
	// The lowest Landlock ABI for each promise. seccomp keeps those that are missing here, and
	// what goes beyond the ports themselves.
	lacks := map[string]int{enforce.GapFiles: 1, enforce.GapZsbxFiles: 1, enforce.GapTruncate: 1, enforce.GapTCPPorts: 4,
		enforce.GapUnixSockets: 9, enforce.GapAbstractSockets: 6, enforce.GapSignals: 6}
	if caps.Seccomp && caps.SeccompNotify && caps.Landlock < 9 {
		delete(lacks, enforce.GapTCPPorts)
		delete(lacks, enforce.GapUnixSockets)
		delete(lacks, enforce.GapAbstractSockets)
		delete(lacks, enforce.GapSignals)
	}
	if caps.Seccomp {
		delete(lacks, enforce.GapTruncate)
	}
	seen := make(map[string]bool)
	for _, p := range proofs {
		seen[p.Name] = true
		want := caps.Landlock >= lacks[p.Name] || strings.HasPrefix(p.Promise, "only the TCP ports that are listed: ") ||
			strings.Contains(p.Promise, ": fcntl(2) ") || strings.Contains(p.Promise, ": ioctl(2) ")
		if p.Held != want {
			t.Errorf("%s: held %v, want %v: %s", p.Name, p.Held, want, p.Detail)
		}
		if p.Promise == "" || p.Detail == "" || (p.Means != "") != p.Held {
			t.Errorf("%+v", p)
		}
		t.Logf("%-60s %-5v %-9s %s", p.Promise, p.Held, p.Means, p.Detail)
	}
	for _, name := range enforce.GapNames() {
		switch name {
		case enforce.GapDeny, enforce.GapDenyMissing, enforce.GapHome, enforce.GapIPC, enforce.GapLimits, enforce.GapMetadata, enforce.GapOrphans, enforce.GapPids, enforce.GapProtect, enforce.GapTCPAutobind, enforce.GapTerminals, enforce.GapTry:
			continue // these have their own tests
		}
		if !seen[name] {
			t.Errorf("%s is not proved", name)
		}
	}
}

// TestSelfTestLeaves: nothing is left in the directory for temporary files. Root can list, and so remove, what an
// ordinary user can't.
func TestSelfTestLeaves(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if _, err := selftest.Run(enforce.Probe()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSelfTestCatches: a machine that enforces less than it claims is detected.
func TestSelfTestCatches(t *testing.T) {
	caps := enforce.Probe()
	testkit.NeedLandlock(t, caps.Landlock, 1, caps.LandlockReason)
	caps.Landlock, caps.Seccomp = 0, false
	proofs, err := selftest.Run(caps)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		if p.Held && p.Name != "capabilities" && !strings.HasPrefix(p.Means, "refused") {
			t.Errorf("nothing keeps %s: %s", p.Promise, p.Detail)
		}
	}
}

func TestProbe(t *testing.T) {
	caps := enforce.Probe()
	if caps.OS != "linux" || (caps.Landlock == 0) != (caps.LandlockReason != "") || caps.Seccomp != (caps.SeccompReason == "") {
		t.Errorf("%+v", caps)
	}
	enforce.ProbeNamespaces(&caps)
	t.Logf("%+v", caps)
	if caps.Privileged && !caps.MountNS {
		t.Log("CAP_SYS_ADMIN, and yet no mount namespace")
	}
}

func BenchmarkProbe(b *testing.B) {
	for b.Loop() {
		enforce.Probe()
	}
}
