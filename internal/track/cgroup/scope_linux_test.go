package cgroup

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestBusOutside: a message bus outside the PID namespace is not asked for a scope. Its manager
// would move another process into it, which would be killed instead of the command.
func TestBusOutside(t *testing.T) {
	if os.Getenv("ZSBX_TEST_BUS") != "" {
		os.Stderr.WriteString(ProbeScope().Error())
		os.Exit(0)
	}
	daemon := testkit.NeedProgram(t, "dbus-daemon")
	bus := exec.Command(daemon, "--session", "--nofork", "--print-address", "--address=unix:path="+t.TempDir()+"/bus")
	out, err := bus.StdoutPipe()
	if err == nil {
		err = bus.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Wait()
	defer bus.Process.Kill()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says  string
		attrs *syscall.SysProcAttr
	}{
		{"the user's service manager is not on the message bus", nil}, // the control
		{"it is outside this PID namespace", &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}},
	} {
		asks := exec.Command("/proc/self/exe", "-test.run=^TestBusOutside$")
		asks.Env = append(os.Environ(), "ZSBX_TEST_BUS=1", "DBUS_SESSION_BUS_ADDRESS="+strings.TrimSpace(address))
		asks.SysProcAttr = c.attrs
		if c.attrs != nil && os.Getuid() != 0 {
			c.attrs.Cloneflags |= unix.CLONE_NEWUSER
			c.attrs.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
			c.attrs.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		}
		said, err := asks.CombinedOutput()
		if err != nil && c.attrs != nil {
			testkit.Lacks(t, testkit.UserNS, err.Error())
		}
		if err != nil || !strings.Contains(string(said), c.says) {
			t.Errorf("%v: %s; want %s", err, said, c.says)
		}
	}
}

// TestBusSilent: if a message bus does not answer, the error is the exceeded time limit.
func TestBusSilent(t *testing.T) {
	path := t.TempDir() + "/bus"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := userBus(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
