package track

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestScopeRefused: where the user's service manager does not answer, nothing
// of the command runs; by name that is an error, else the next tracker is
// taken.
func TestScopeRefused(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/dev/null/bus")
	offered := caps{os: "linux", noDomain: "-", noGroup: "-"}
	s, err := Begin(Options{Store: tempStore(t), Tracker: Cgroup, caps: &offered})
	if err != nil {
		t.Fatal(err)
	}
	var te *TrackerError
	if err := s.Start(runShell(t, "exit 1")); !errors.As(err, &te) || te.Kind != Cgroup {
		t.Errorf("%v", err)
	}
	if _, err := s.Close(deadline(t)); err != nil {
		t.Error(err)
	}
	for _, namespaces := range []uintptr{0, pidNamespace()} {
		testScopeLost(t, offered, namespaces)
	}
}

// pidNamespace are the flags of clone(2) by which this process gets one.
func pidNamespace() uintptr {
	if os.Geteuid() == 0 {
		return unix.CLONE_NEWPID
	}
	return unix.CLONE_NEWPID | unix.CLONE_NEWUSER
}

func testScopeLost(t *testing.T, offered caps, namespaces uintptr) {
	t.Helper()
	c := runShell(t, "exit 7")
	c.Namespaces = namespaces
	s := begin(t, Options{Store: tempStore(t), caps: &offered}, c)
	if s.choice.Kind != Subtree {
		t.Errorf("tracker %s", s.choice.Kind)
	}
	if ws, err := s.Wait(); err != nil || ws.ExitStatus() != 7 {
		t.Errorf("%v, %v", ws, err)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}
