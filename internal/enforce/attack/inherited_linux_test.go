package attack_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// tcpStdin returns a TCP socket to pass on: one that listens, or one that is connected.
func tcpStdin(t *testing.T, connected, multipath bool) *os.File {
	t.Helper()
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(multipath)
	l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var conn interface{ File() (*os.File, error) } = l.(*net.TCPListener)
	if connected {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { io.Copy(io.Discard, c); c.Close() }()
			}
		}()
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conn = c.(*net.TCPConn)
	}
	f, err := conn.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// stdinPlan is the place's plan for a command that inherits a socket.
func (p *place) stdinPlan() *enforce.Plan {
	caps := enforce.Probe()
	caps.MountNS, caps.MountReason = false, "left out by the test"
	return enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
}

// TestInheritedSockets: if only listed ports are allowed, an inherited TCP socket keeps its
// peer, or gets one at such a port.
func TestInheritedSockets(t *testing.T) {
	needLandlock(t, 1)
	if c := enforce.Probe(); !c.SeccompNotify {
		testkit.Lacks(t, testkit.Seccomp, c.SeccompNotifyReason)
	}
	port := serveTCP(t)
	start := func(t *testing.T, p *place, plan *enforce.Plan, how string, multipath bool) int {
		exe := self(t)
		f := tcpStdin(t, strings.HasPrefix(how, "leave") || how == "write" || how == "ulp", multipath)
		if how == "accept" {
			c, err := net.Dial("tcp4", listenAddress(t, f))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		return runFiles(t, plan, &fork.Command{Path: exe, Args: []string{exe, how, fmt.Sprint(port)}, Dir: p.in,
			Env: []string{"ZSBX_TEST_ACT=stdin-anew"}, Files: []*os.File{f, os.Stdout, os.Stderr}})
	}
	for how, want := range map[string]unixErrno{
		"fast-to": unix.EOPNOTSUPP, "fast-msg": unix.EOPNOTSUPP, "fast-mmsg": unix.EOPNOTSUPP, "connect": unix.EACCES,
		"put-off": unix.EACCES, "listen": unix.EACCES, "leave-connect": unix.EACCES, "leave-listen": unix.EACCES,
		"leave-fast": unix.EOPNOTSUPP, "ulp": unix.ENOPROTOOPT, "write": 0, "accept": 0,
	} {
		t.Run(how, func(t *testing.T) {
			p := newPlace(t)
			if got := start(t, p, nil, how, false); got != 0 {
				t.Fatalf("control: errno %d", got)
			}
			p.policy.Net = resolve.ResolvedNet{Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: 1}}}
			if got := start(t, p, p.stdinPlan(), how, false); got != int(want) {
				t.Errorf("errno %d, want %d", got, want)
			}
			if got := start(t, p, p.stdinPlan(), how, true); got == 0 && want != 0 {
				t.Errorf("with MPTCP it worked")
			}
			id, _ := fileID(t, "/")
			p.policy.Net.Unix = []resolve.Path{{Path: "/", Mode: os.ModeDir, ID: id}}
			if got := start(t, p, p.stdinPlan(), how, false); got != int(want) {
				t.Errorf("with every Unix socket: errno %d, want %d", got, want)
			}
		})
	}
}

func listenAddress(t *testing.T, f *os.File) string {
	t.Helper()
	sa, err := unix.Getsockname(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", sa.(*unix.SockaddrInet4).Port)
}

// TestInheritedSocketsRefused: without a network, the command is not started with a socket that
// it could connect again or make listen, nor with one of another protocol.
func TestInheritedSocketsRefused(t *testing.T) {
	p := newPlace(t)
	p.policy.Net.Mode = resolve.NetNone
	refused := func(plan *enforce.Plan, f *os.File, want string) {
		t.Helper()
		c := command(p, "true")
		c.Files = []*os.File{f}
		if _, err := plan.Confine(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	refused(p.plan(), tcpStdin(t, true, false), "descriptor 0 is a TCP socket")
	refused(p.plan(), tcpStdin(t, false, false), "descriptor 0 is a TCP socket")
	for _, protocol := range []int{unix.IPPROTO_MPTCP, unix.IPPROTO_SCTP} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			t.Logf("protocol %d is not there: %v", protocol, err)
			continue
		}
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		if err := unix.Listen(fd, 1); err != nil {
			t.Fatal(err)
		}
		refused(p.withoutBroker(), f, "descriptor 0 is a socket that could send anywhere")
		if protocol == unix.IPPROTO_SCTP {
			refused(p.stdinPlan(), f, "descriptor 0 is a socket that could send anywhere")
		}
	}
}
