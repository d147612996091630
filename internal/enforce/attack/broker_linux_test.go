package attack_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// TestNetlinkPeers: no process and no group can be reached by netlink(7), for which the kernel
// requires a capability that the command lacks. An ordinary user gets the same error without
// zsbx.
func TestNetlinkPeers(t *testing.T) {
	needLandlock(t, 1)
	const group = 31 // nobody's
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (group - 1)}); err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	received := func() (n int) {
		for {
			if _, _, err := unix.Recvfrom(fd, make([]byte, 64), 0); err != nil {
				return n
			}
			n++
		}
	}
	p := newPlace(t)
	for act, arg := range map[string]uint32{"netlink-peer": own.(*unix.SockaddrNetlink).Pid, "netlink-group": group} {
		if got := p.try(t, p.plan(), act, fmt.Sprint(arg)); got != unix.EPERM {
			t.Errorf("%s: got %v, want %v", act, got, unix.EPERM)
		}
		if n := received(); n != 0 {
			t.Errorf("%s: %d messages arrived", act, n)
		}
		control, want := p.try(t, nil, act, fmt.Sprint(arg)), unixErrno(0)
		if os.Geteuid() != 0 {
			want = unix.EPERM
		}
		if n := received(); control != want || n == 0 && want == 0 {
			t.Errorf("control of %s: %v, %d messages", act, control, n)
		}
	}
	if got := p.try(t, p.plan(), "netlink-own"); got != 0 {
		t.Errorf("to the kernel: %v", got)
	}
}

// TestSocketAuthority: the broker connects and listens for the command with the calling
// thread's user, groups and capabilities.
func TestSocketAuthority(t *testing.T) {
	needGuard(t)
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user has nothing to give up")
	}
	for how, want := range map[string]unixErrno{"capability": unix.EACCES, "fsuid": unix.EACCES, "groups": 0, "listener": 0} {
		for _, mode := range []resolve.NetMode{resolve.NetOpen, resolve.NetPorts} {
			p := newPlace(t)
			p.policy.Net.Mode = mode
			p.policy.Net.BindTCP = []policy.Port{{Number: 1}}                // so that listen(2) is allowed on all kernels
			for _, dir := range []string{p.in, p.dir, filepath.Dir(p.dir)} { // the thread must be able to search them as another user
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.try(t, nil, "authority", how, p.in+"/control"); got != want {
				t.Errorf("control of %s: %v, want %v", how, got, want)
			}
			if got := p.try(t, p.plan(), "authority", how, p.in+"/sock"); got != want {
				t.Errorf("%s, %v: %v, want %v", how, mode, got, want)
			}
		}
	}
}

// startOverseer runs an act below a separate process that answers its calls.
func startOverseer(t *testing.T, p *place, processors string, d time.Duration, act ...string) (*exec.Cmd, func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d+testkit.Patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self(t), append([]string{p.in, fmt.Sprint(d.Milliseconds())}, act...)...)
	c.Env = []string{"ZSBX_TEST_ACT=overseer", "GOMAXPROCS=" + processors}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, c.Wait
}

// TestSocketStall: a call that the command makes slow delays no other call.
func TestSocketStall(t *testing.T) {
	t.Parallel()
	needBroker(t)
	for _, how := range []string{"full", "linger"} {
		p := newPlace(t)
		if got := p.try(t, nil, "stall", how, p.in+"/control"); got != 0 {
			t.Errorf("control of %s: %v", how, got)
		}
		if got := p.try(t, p.plan(), "stall", how, p.in+"/own"); got != 0 {
			t.Errorf("%s: %v", how, got)
		}
	}
}

// TestSocketStallTime: such a call delays nothing else in the broker's process, such as garbage
// collection and time limits, with one processor and with two.
func TestSocketStallTime(t *testing.T) {
	t.Parallel()
	needBroker(t)
	for _, processors := range []string{"1", "2"} {
		p := newPlace(t)
		begin := time.Now()
		const limit = 2 * time.Second
		_, wait := startOverseer(t, p, processors, limit, "stall", "full", p.in+"/own")
		if err := wait(); err != nil {
			t.Errorf("with %s: %v", processors, err)
		}
		if d := time.Since(begin); d > limit+testkit.Patience/2 {
			t.Errorf("with %s it ended after %v instead of %v", processors, d, limit)
		}
	}
}

// TestSupervisorStopped: while the supervisor is stopped, calls wait. When it is killed, they
// fail and the session ends.
func TestSupervisorStopped(t *testing.T) {
	t.Parallel()
	needBroker(t)
	p := newPlace(t)
	d := listenOutside(t, "unix", p.out+"/sock")
	log := p.in + "/log"
	c, wait := startOverseer(t, p, "2", time.Hour, "knock", p.out+"/sock", log)
	lines := func() []string {
		b, _ := os.ReadFile(log)
		return strings.Fields(string(b))
	}
	until := func(what string, f func() bool) {
		t.Helper()
		testkit.Eventually(t, what, f)
	}
	until("answers", func() bool { return len(lines()) > 3 })
	if err := c.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := 0
	until("a call that waits", func() bool {
		stopped = len(lines())
		return !testkit.Within(200*time.Millisecond, func() bool { return len(lines()) != stopped })
	})
	c.Process.Signal(unix.SIGCONT)
	until("more answers", func() bool { return len(lines()) > stopped+3 })
	c.Process.Signal(unix.SIGSTOP)
	c.Process.Signal(unix.SIGKILL)
	wait()
	pid, _ := strconv.Atoi(lines()[0])
	until("the end of the session", func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
	for _, l := range lines()[1:] {
		if l != fmt.Sprint(int(unix.EACCES)) && l != fmt.Sprint(int(unix.ENOSYS)) {
			t.Errorf("an answer was %s", l)
		}
	}
	if n := d.reached.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
	if got := p.try(t, nil, "reach", "plain", p.out+"/sock"); got != 0 {
		t.Errorf("control: %v", got)
	}
}

// TestSupervisorReplaced: after the supervisor has ended, the command can't replace it.
func TestSupervisorReplaced(t *testing.T) {
	t.Parallel()
	needBroker(t)
	p := newPlace(t)
	d := listenOutside(t, "unix", p.out+"/sock")
	c := actCommand(self(t), p.in, "own-overseer", []string{d.path})
	m, err := p.plan().Confine(c)
	if err != nil {
		t.Fatal(err)
	}
	proc, err := fork.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if got := unix.Errno(await(t, proc).ExitStatus()); got != unix.EBUSY || d.reached.Load() != 0 {
		t.Errorf("%v, %d connections", got, d.reached.Load())
	}
	if got := p.try(t, nil, "own-overseer", d.path); got != 0 {
		t.Errorf("control: %v", got)
	}
}
