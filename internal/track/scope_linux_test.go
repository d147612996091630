package track

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// TestScopeRefused: if the user's service manager does not answer, nothing of the command runs,
// with or without a namespace, and the error says what to type.
func TestScopeRefused(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/dev/null/bus")
	offered := caps{os: "linux", noDomain: "-", group: scope}
	for _, namespaces := range []uintptr{0, pidNamespace()} {
		s, err := Begin(Options{Store: tempStore(t), caps: &offered})
		if err != nil {
			t.Fatal(err)
		}
		c := runShell(t, "exit 1")
		c.Namespaces = namespaces
		var te *TrackerError
		if err := s.Start(c); !errors.As(err, &te) || te.Kind != Cgroup || te.Hint != "--track subtree" {
			t.Errorf("%v", err)
		}
		if _, err := s.Close(deadline(t)); err != nil {
			t.Error(err)
		}
	}
}

// TestScopeStartFails: if a start fails before the command waits for its scope, the error does
// not blame the scope. Otherwise it would not be tried again without what was refused.
func TestScopeStartFails(t *testing.T) {
	offered := caps{os: "linux", noDomain: "-", group: scope}
	s, err := Begin(Options{Store: tempStore(t), caps: &offered})
	if err != nil {
		t.Fatal(err)
	}
	c := runShell(t, "exit 1")
	c.Before = []fork.Step{{Tag: "test", Name: "close(2)", Nr: unix.SYS_CLOSE, Args: [6]uintptr{^uintptr(0)}}}
	var step *fork.StepError
	if err := s.Start(c); !errors.As(err, &step) || step.Tag != "test" {
		t.Errorf("%v", err)
	}
	if _, err := s.Close(deadline(t)); err != nil {
		t.Error(err)
	}
}

// pidNamespace returns the flags of clone(2) for a PID namespace.
func pidNamespace() uintptr {
	if os.Geteuid() == 0 {
		return unix.CLONE_NEWPID
	}
	return unix.CLONE_NEWPID | unix.CLONE_NEWUSER
}

// TestScopeSupervisorKilled: a command that waits for its scope, and its keeper, end
// with the supervisor.
func TestScopeSupervisorKilled(t *testing.T) {
	dir := t.TempDir()
	bus, err := net.Listen("unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, dir)
	cmd.Env = append(os.Environ(), helperEnv+"=scopehost", "DBUS_SESSION_BUS_ADDRESS=unix:path="+bus.Addr().String())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	asked, err := bus.Accept() // the command exists, and the manager is asked to move it
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	st, err := OpenStoreAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	keeper := one(t, st).Record.Keeper
	tab, err := proc.Snapshot()
	if err != nil || !tab.Has(keeper) || len(tab.Below(keeper.Pid)) != 1 {
		t.Fatalf("keeper %v, %v", keeper, err)
	}
	_ = cmd.Process.Kill()
	defer func() { _ = unix.Kill(keeper.Pid, unix.SIGKILL) }()
	eventually(t, "the keeper has ended", func() bool {
		tab, err := proc.Snapshot()
		return err == nil && !tab.Has(keeper)
	})
	if r, err := st.Reap(deadline(t), one(t, st).ID); err != nil || r.Left() || !r.Removed {
		t.Errorf("%+v, %v", r, err)
	}
}

// playScopeHost starts a session whose command waits for a scope.
func playScopeHost(args []string) {
	st, err := OpenStoreAt(args[0])
	if err != nil {
		panic(err)
	}
	s, err := Begin(Options{Store: st, Tracker: Cgroup, caps: &caps{os: "linux", noDomain: "-", group: scope}})
	if err != nil {
		panic(err)
	}
	panic(s.Start(&fork.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 1"}, Env: os.Environ()}))
}
