package libsystem

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestCheckOfItself proves that the arguments arrive where sandbox_check expects them. A test
// process is in no sandbox and is allowed everything, while a misplaced argument causes the
// answer -1.
func TestCheckOfItself(t *testing.T) {
	pid := os.Getpid()
	if got := SandboxCheck(pid, "", FilterNone, ""); got != Allowed {
		testkit.Lacks(t, testkit.Seatbelt, "this test runs in a sandbox, or the call is wrong: ", got)
	}
	for _, c := range []struct {
		op     string
		filter Filter
		arg    string
	}{
		{"file-read-data", FilterPath, "/private/etc/hosts"},
		{"file-write-create", FilterPath, "/private/tmp/x"},
		{"mach-lookup", FilterGlobalName, "dev.zsbx.nobody"},
	} {
		if got := SandboxCheck(pid, c.op, c.filter, c.arg); got != Allowed {
			t.Errorf("%s %s: %d", c.op, c.arg, got)
		}
	}
	if got := SandboxCheck(pid, "no-such-operation", FilterPath, "/"); got == Allowed {
		t.Errorf("an operation that does not exist: %d", got)
	}
}

func TestListPids(t *testing.T) {
	for _, uid := range []int{-1, os.Geteuid()} {
		pids, err := ListPids(uid)
		if err != nil || !slices.Contains(pids, os.Getpid()) {
			t.Errorf("uid %d: %d pids, %v", uid, len(pids), err)
		}
	}
}

// TestPathOf: the third argument of fcntl arrives.
func TestPathOf(t *testing.T) {
	f, err := os.Open("/private/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := PathOf(int(f.Fd())); err != nil || p != "/private/etc/hosts" {
		t.Errorf("%q, %v", p, err)
	}
	f.Close()
	if p, err := PathOf(1 << 20); err == nil {
		t.Errorf("of a descriptor that is not open: %q", p)
	}
}

// TestUserTemp: it is the directory that mktemp(1) and Foundation use.
func TestUserTemp(t *testing.T) {
	dir := UserTemp()
	if st, err := os.Stat(dir); err != nil || !st.IsDir() || !strings.HasSuffix(dir, "/T/") {
		t.Errorf("%q: %v", dir, err)
	}
}

// TestBadProfile: a profile that does not compile changes nothing and says
// why.
func TestBadProfile(t *testing.T) {
	for _, profile := range []string{"(version 1)(no-such-form)", "(deny default)", "(version 1"} {
		if err := SandboxInit(profile); err == nil {
			t.Errorf("%q compiles", profile)
		}
	}
	if _, err := os.ReadFile("/etc/hosts"); err != nil {
		t.Errorf("something was installed all the same: %v", err)
	}
	if err := SandboxInit("(version 1)\x00"); err == nil {
		t.Error("a zero byte was passed on")
	}
}
