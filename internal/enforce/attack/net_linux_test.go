package attack_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// serveTCP listens on all addresses of the machine, for as long as the test
// runs.
func serveTCP(t *testing.T) int {
	t.Helper()
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// netAttack is an act over the network with its answer in each mode.
type netAttack struct {
	act               string
	args              []string // "ALLOWED" and "OTHER" stand for two ports
	none, ports, open unixErrno
	root              bool
}

type unixErrno = syscall.Errno

const (
	ok      = unixErrno(0)
	acces   = unix.EACCES
	noproto = unix.EPROTONOSUPPORT
)

// ownAnswer is the answer without network where the session has a network of its own, and whether it
// differs from the one without. What UDP sends there arrives nowhere: see TestOwnStrangers.
func (a *netAttack) ownAnswer() (unixErrno, bool) {
	switch a.act {
	case "mptcp":
		return noproto, true
	case "fast-to", "fast-msg", "fast-mmsg":
		return unix.EOPNOTSUPP, true
	case "ulp":
		return unix.ENOPROTOOPT, true
	case "udp4", "udp6", "bind-tcp", "listen", "netlink":
		return ok, true
	}
	return 0, false
}

// ownNet reports whether a plan gives a command without network a network of the session's own.
func ownNet(plan *enforce.Plan) bool { return plan.Broker != nil && plan.Broker.Own }

func netAttacks() []netAttack {
	other, allowed := []string{"OTHER"}, []string{"ALLOWED"}
	return []netAttack{
		{act: "tcp4", args: allowed, none: acces, ports: ok},
		{act: "tcp4-6", args: allowed, none: acces, ports: ok},
		{act: "tcp6", args: allowed, none: acces, ports: ok},
		{act: "mapped", args: allowed, none: acces, ports: ok},
		{act: "tcp4", args: other, none: acces, ports: acces},
		{act: "tcp4-6", args: other, none: acces, ports: acces},
		{act: "tcp6", args: other, none: acces, ports: acces},
		{act: "mapped", args: other, none: acces, ports: acces},
		{act: "mptcp", args: other, none: acces, ports: noproto},
		{act: "mptcp", args: allowed, none: acces, ports: noproto},
		{act: "fast-to", args: other, none: acces, ports: unix.EOPNOTSUPP},
		{act: "fast-msg", args: other, none: acces, ports: unix.EOPNOTSUPP},
		{act: "fast-mmsg", args: other, none: acces, ports: unix.EOPNOTSUPP},
		{act: "fast-conn", args: other, none: acces, ports: acces},
		{act: "fast-conn", args: allowed, none: acces, ports: ok},
		{act: "udp4", args: other, none: acces, ports: lost()}, // see TestNothingButNames
		{act: "udp6", args: other, none: acces, ports: lost()},
		{act: "bind-tcp", args: []string{"0"}, none: acces, ports: acces},
		{act: "listen", none: acces, ports: acces},
		{act: "ulp", none: acces, ports: unix.ENOPROTOOPT},
		{act: "netlink", none: acces, ports: ok},
		{act: "socket", args: sock(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC), none: acces, ports: noproto, open: noproto},
		{act: "socket", args: sock(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_USERSOCK), none: acces, ports: noproto, open: noproto},
		{act: "socket", args: sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), none: acces, ports: acces, open: unix.EPERM, root: true},
		{act: "socket", args: sock(unix.AF_PACKET, unix.SOCK_RAW, 0), none: acces, ports: acces, open: unix.EAFNOSUPPORT, root: true},
		{act: "socket", args: sock(unix.AF_VSOCK, unix.SOCK_STREAM, 0), none: acces, ports: acces, open: unix.EAFNOSUPPORT},
		{act: "socket", args: sock(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), none: acces, ports: acces, open: unix.EAFNOSUPPORT},
		{act: "socket", args: sock(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), none: acces, ports: acces},
		{act: "socket", args: sock(unix.AF_SMC, unix.SOCK_STREAM, 0), none: acces, ports: acces, open: unix.EAFNOSUPPORT},
		{act: "io_uring", none: unix.ENOSYS, ports: unix.ENOSYS, open: unix.ENOSYS},
		{act: "int80-sock", none: errnoSignal + unixErrno(unix.SIGSYS), ports: errnoSignal + unixErrno(unix.SIGSYS), open: errnoSignal + unixErrno(unix.SIGSYS)},
		{act: "pair"},
		{act: "unix-own", args: []string{"IN/sock"}, ports: listenWithoutPorts()},
	}
}

// lost returns the answer to sending by UDP when nothing arrives. It depends on whether the
// broker asks name servers for the command.
func lost() unixErrno {
	if enforce.Probe().SeccompNotify {
		return ok
	}
	return acces
}

// listenWithoutPorts returns the answer to listen(2) on a Unix socket if no port may be
// listened on. A filter alone can't distinguish it from a TCP socket.
func listenWithoutPorts() unixErrno {
	if brokerChecks() {
		return ok
	}
	return lost() // a broker that asks name servers checks listen(2), too
}

// needPorts skips a test if nothing can limit TCP to ports.
func needPorts(t *testing.T) {
	t.Helper()
	if !brokerChecks() {
		needLandlock(t, 4)
	}
}

func sock(family, kind, proto int) []string {
	return []string{fmt.Sprint(family), fmt.Sprint(kind), fmt.Sprint(proto)}
}

func TestNetworkAttacks(t *testing.T) {
	needSeccomp(t)
	allowed, other := serveTCP(t), serveTCP(t)
	for _, mode := range []resolve.NetMode{resolve.NetNone, resolve.NetPorts, resolve.NetOpen} {
		t.Run(string(mode), func(t *testing.T) {
			if mode == resolve.NetPorts {
				needPorts(t)
			}
			for _, a := range netAttacks() {
				name := attack{act: a.act, args: a.args}.name()
				t.Run(name, func(t *testing.T) {
					if a.root && os.Getuid() != 0 {
						t.Skip("only root can do it at all")
					}
					p := newPlace(t)
					p.policy.Net = resolve.ResolvedNet{Mode: mode}
					if mode == resolve.NetPorts {
						p.policy.Net.ConnectTCP = []policy.Port{{Number: uint16(allowed)}}
					}
					args := p.fill(a.args)
					for i, s := range args {
						switch s {
						case "ALLOWED":
							args[i] = fmt.Sprint(allowed)
						case "OTHER":
							args[i] = fmt.Sprint(other)
						}
					}
					control := p.try(t, nil, a.act, args...)
					os.Remove(p.in + "/sock")
					plan := p.plan()
					got := p.try(t, plan, a.act, args...)
					want := map[resolve.NetMode]unixErrno{resolve.NetNone: a.none, resolve.NetPorts: a.ports, resolve.NetOpen: a.open}[mode]
					if w, differs := a.ownAnswer(); mode == resolve.NetNone && ownNet(plan) && differs {
						want = w
					}
					if a.act == "int80-sock" && control == noCode32 && got == noCode32 {
						t.Skip("this kernel has no 32-bit system calls")
					}
					if got != want && (want != ok || got != control) {
						t.Errorf("got %v (%d), want %v", got, got, want)
					}
					switch {
					// This kernel has no such sockets: the filter's own answer counts.
					case control == unix.EAFNOSUPPORT && a.act == "socket":
						filterAnswers(t, p.plan(), "socket", args, want)
					case control == unix.EPROTONOSUPPORT && a.act == "mptcp":
						filterAnswers(t, p.plan(), "socket", sock(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), want)
					case control != 0:
						t.Errorf("control: %v", control)
					}
				})
			}
		})
	}
}

// filterAnswers checks the filter's answer to a call, whatever this kernel would answer.
func filterAnswers(t *testing.T, plan *enforce.Plan, call string, args []string, want unixErrno) {
	t.Helper()
	var numbers [6]uint64
	for i, a := range args {
		n, err := strconv.ParseUint(a, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers[i] = n
	}
	answer := unix.ErrnoName(want)
	if want == ok {
		answer = "allowed"
	}
	if got := plan.Seccomp.Answer(call, numbers); got != answer {
		t.Errorf("the filter answers %s to %s %v; want %s", got, call, args, answer)
	}
}

// needSeccomp skips a test if filters can't be installed.
func needSeccomp(t *testing.T) {
	t.Helper()
	if c := enforce.Probe(); !c.Seccomp {
		testkit.Lacks(t, testkit.Seccomp, c.SeccompReason)
	}
}

// TestBindPorts: with a port to listen on, that port and no other can be
// bound, and Unix sockets can listen.
func TestBindPorts(t *testing.T) {
	needLandlock(t, 4)
	port := 20000 + os.Getpid()%10000 // one that the kernel does not assign to others meanwhile
	testkit.Eventually(t, "a port is free", func() bool {
		port++
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			l.Close()
		}
		return err == nil
	})
	p := newPlace(t)
	p.policy.Net = resolve.ResolvedNet{Mode: resolve.NetPorts, BindTCP: []policy.Port{{Number: uint16(port)}}}
	plan := p.plan()
	for _, tt := range []struct {
		act, arg      string
		want, control unixErrno
	}{
		{"bind-tcp", fmt.Sprint(port), ok, ok},
		{"bind-tcp", "0", acces, ok},
		{"unix-own", p.in + "/sock", ok, ok},
		{"tcp4", fmt.Sprint(port), acces, unix.ECONNREFUSED},
	} {
		if got := p.try(t, plan, tt.act, tt.arg); got != tt.want {
			t.Errorf("%s %s: got %v, want %v", tt.act, tt.arg, got, tt.want)
		}
		os.Remove(p.in + "/sock")
		if control := p.try(t, nil, tt.act, tt.arg); control != tt.control {
			t.Errorf("control: %s %s: got %v, want %v", tt.act, tt.arg, control, tt.control)
		}
	}
}

// brokerChecks reports whether the broker checks sockets here.
func brokerChecks() bool {
	c := enforce.Probe()
	return c.Landlock < 9 && c.Seccomp && c.SeccompNotify
}

// TestUnixSockets: a socket outside can't be connected to, by path or by abstract name, if
// Landlock or zsbx checks that. One that the policy names can.
func TestUnixSockets(t *testing.T) {
	needLandlock(t, 1)
	have := enforce.Probe().Landlock
	p := newPlace(t)
	listen := func(name string) {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	abstract := fmt.Sprintf("@zsbx-test-%d", os.Getpid())
	denied, allowed := p.out+"/denied", p.out+"/allowed"
	for _, name := range []string{abstract, denied, allowed} {
		listen(name)
		if got := p.try(t, nil, "unix", name); got != 0 {
			t.Fatalf("control: %s: %v", name, got)
		}
	}
	id, mode := fileID(t, allowed)
	p.policy.Net.Unix = []resolve.Path{{Path: allowed, ID: id, Mode: mode, Rule: policy.Rule{Origin: policy.Origin{Source: "--unix"}}}}
	plan := p.plan()
	check := func(name string, want unixErrno, abi int) {
		if have < abi && !brokerChecks() {
			t.Logf("%s: not checked below ABI %d", name, abi)
			want = 0
		}
		if got := p.try(t, plan, "unix", name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	hidden := unix.EPERM
	if brokerChecks() {
		hidden = unix.ECONNREFUSED // as if nobody had the name
	}
	check(abstract, hidden, 6)
	check(denied, unix.EACCES, 9)
	check(allowed, ok, 9)
	check(p.in+"/none", unix.ENOENT, 0)
	if got := p.try(t, plan, "unix-own", p.in+"/own"); got != 0 {
		t.Errorf("between the command's own processes: %v", got)
	}
}

// TestNames: C programs look names up in /etc/hosts without the network, and fail without delay
// if they need it.
func TestNames(t *testing.T) {
	needSeccomp(t)
	p := newPlace(t)
	p.policy.Net.Mode = resolve.NetNone
	if status, out := p.sh(t, p.plan(), "getent hosts localhost && getent ahosts localhost"); status != 0 {
		t.Errorf("localhost: exit status %d: %s", status, out)
	}
	if status, _ := p.sh(t, p.plan(), "timeout 5 getent ahosts example.invalid"); status == 0 || status == 124 {
		t.Errorf("example.invalid: exit status %d", status)
	}
}
