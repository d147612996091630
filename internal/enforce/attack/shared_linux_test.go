package attack_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// sharedPlace returns a place with a network by name where the session has no network of its own, and
// its plan.
func sharedPlace(t *testing.T, rules ...string) (*place, *enforce.Plan) {
	t.Helper()
	needLandlock(t, 4)
	if c := enforce.Probe(); !c.SeccompNotify {
		testkit.Lacks(t, testkit.Seccomp, c.SeccompNotifyReason)
	}
	p := newPlace(t)
	p.policy.Net.Mode = resolve.NetHosts
	var all []rule.Rule
	for _, text := range rules {
		r, err := rule.Parse(text, rule.Marks{Private: strings.HasPrefix(text, sharedName)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	p.policy.Net.Hosts.Rules = rule.NewSet(all, nil)
	plan := p.plan()
	if !plan.ReachesHosts() || plan.Broker.Own {
		t.Fatalf("the plan reaches no hosts, or has a network of its own: %v", plan.Layers())
	}
	return p, plan
}

// echoing has an echo server on all addresses of the machine.
func echoing(t *testing.T) (port int, reached *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	reached = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, reached
}

// TestSharedReach: a server that is allowed is reached however localhost is spelled, and another one
// is not.
func TestSharedReach(t *testing.T) {
	allowed, _ := echoing(t)
	other, reached := echoing(t)
	p, plan := sharedPlace(t, fmt.Sprintf("localhost:%d", allowed))
	for _, how := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"} {
		for _, plan := range []*enforce.Plan{plan, nil} {
			if got := p.try(t, plan, "shared-echo", how, fmt.Sprint(allowed)); got != 0 {
				t.Errorf("confined %v: %s: %v", plan != nil, how, got)
			}
		}
		for _, how := range []string{how, how + " later"} {
			if got := p.try(t, plan, "own-reach", how, fmt.Sprint(other)); got != unix.EACCES || reached.Load() != 0 {
				t.Errorf("another: %s: %v, %d connections", how, got, reached.Load())
			}
			if got := p.try(t, nil, "own-reach", how, fmt.Sprint(other)); got != 0 {
				t.Errorf("control: %s: %v", how, got)
			}
			testkit.Eventually(t, "the control is there", func() bool { return reached.Swap(0) > 0 })
		}
	}
	if got := p.try(t, plan, "own-serve", "nobody"); got != unix.EACCES { // it can't bind
		t.Errorf("bind: %v", got)
	}
	if got := p.try(t, plan, "listen"); got != unix.EACCES {
		t.Errorf("listen: %v", got)
	}
}

// TestSharedNames: any name server's address is zsbx's resolver, by UDP and TCP; other addresses have no
// UDP.
func TestSharedNames(t *testing.T) {
	port, _ := echoing(t)
	p, plan := sharedPlace(t, fmt.Sprintf("%s:%d", sharedName, port))
	for _, how := range []string{"udp", "udp ::", "udp mapped", "tcp", "tcp local"} {
		if got := p.try(t, plan, "shared-ask", how); got != 0 {
			t.Errorf("%s: %v", how, got)
		}
	}
	if got := p.try(t, plan, "shared-echo", "127.0.0.1", fmt.Sprint(port)); got != 0 {
		t.Errorf("by its name: %v", got)
	}
	if got := p.try(t, plan, "shared-udp", "443"); got != unix.ENETUNREACH {
		t.Errorf("QUIC: %v", got)
	}
	if control := p.try(t, nil, "shared-udp", "443"); control != 0 {
		t.Errorf("control: %v", control)
	}
}

// TestSharedDatagrams: nothing that is sent by UDP arrives outside.
func TestSharedDatagrams(t *testing.T) {
	p, plan := sharedPlace(t, "*:443", "0.0.0.0/0:443")
	c, err := net.ListenUDP("udp", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var reached atomic.Int32
	go func() {
		for {
			if _, _, err := c.ReadFrom(make([]byte, 8)); err != nil {
				return
			}
			reached.Add(1)
		}
	}()
	port := fmt.Sprint(c.LocalAddr().(*net.UDPAddr).Port)
	acts := [][]string{{"udp-all", port}}
	for _, how := range []string{"sendto", "connected", "pktinfo", "device", "many", "::1", "::ffff:127.0.0.1"} {
		acts = append(acts, []string{"own-udp", how, port})
	}
	for _, a := range acts {
		got := p.try(t, plan, a[0], a[1:]...)
		time.Sleep(10 * time.Millisecond)
		if reached.Load() != 0 {
			t.Errorf("%v: got %v, and it arrived", a, got)
		}
		control := p.try(t, nil, a[0], a[1:]...)
		if !testkit.Within(testkit.Patience, func() bool { return reached.Swap(0) > 0 }) || control != 0 {
			t.Errorf("control: %v: %v", a, control)
		}
		time.Sleep(10 * time.Millisecond)
		reached.Store(0)
	}
}

// TestSharedKinds: there are no other kinds of sockets.
func TestSharedKinds(t *testing.T) {
	p, plan := sharedPlace(t, "*:443")
	const seqPacket, packet, vsock, smc = unix.SOCK_SEQPACKET, unix.AF_PACKET, unix.AF_VSOCK, unix.AF_SMC
	for want, all := range map[unixErrno][][]string{
		unix.EPROTONOSUPPORT: {sock(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), sock(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_SCTP)},
		unix.EACCES: {
			sock(unix.AF_INET, seqPacket, unix.IPPROTO_SCTP), sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
			sock(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW), sock(packet, unix.SOCK_RAW, 0), sock(vsock, unix.SOCK_STREAM, 0),
			sock(smc, unix.SOCK_STREAM, 0), sock(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP),
		},
	} {
		for _, args := range all {
			filterAnswers(t, plan, "socket", args, want)
		}
	}
	for _, call := range []string{"io_uring_setup", "io_uring_enter"} {
		filterAnswers(t, plan, call, nil, unix.ENOSYS)
	}
	for _, proto := range []int{unix.IPPROTO_ICMP, unix.IPPROTO_UDPLITE} {
		if got := p.try(t, plan, "socket", sock(unix.AF_INET, unix.SOCK_DGRAM, proto)...); got != unix.EACCES {
			t.Errorf("datagrams of protocol %d: %v", proto, got)
		}
	}
}

// TestSharedFastOpen: no way to send before connect(2) reaches a server that is not allowed, or one that
// is.
func TestSharedFastOpen(t *testing.T) {
	port, reached := echoing(t)
	p, plan := sharedPlace(t, fmt.Sprintf("localhost:%d", port))
	for _, act := range []string{"fast-to", "fast-msg", "fast-mmsg", "fast-conn"} {
		want := unix.EOPNOTSUPP
		if act == "fast-conn" {
			want = unix.ENOPROTOOPT
		}
		if got := p.try(t, plan, act, fmt.Sprint(port)); got != want || reached.Load() != 0 {
			t.Errorf("%s: %v, %d connections", act, got, reached.Load())
		}
		if got := p.try(t, nil, act, fmt.Sprint(port)); got != 0 {
			t.Errorf("control: %s: %v", act, got)
		}
		testkit.Eventually(t, "the control is there", func() bool { return reached.Swap(0) > 0 })
	}
}

// TestSharedOptions: a socket gets no option that leads its connection elsewhere.
func TestSharedOptions(t *testing.T) {
	p, plan := sharedPlace(t, "*:443")
	for name, a := range map[string][3]int{
		"SO_BINDTODEVICE":     {unix.AF_INET, unix.SOL_SOCKET, unix.SO_BINDTODEVICE},
		"SO_BINDTOIFINDEX":    {unix.AF_INET, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX},
		"IP_OPTIONS":          {unix.AF_INET, unix.IPPROTO_IP, unix.IP_OPTIONS},
		"IPV6_RTHDR":          {unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_RTHDR},
		"IPV6_2292PKTOPTIONS": {unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_2292PKTOPTIONS},
	} {
		args := []string{fmt.Sprint(a[0]), fmt.Sprint(a[1]), fmt.Sprint(a[2])}
		if got := p.try(t, plan, "shared-option", args...); got != unix.EPERM {
			t.Errorf("%s: %v", name, got)
		}
		if control := p.try(t, nil, "shared-option", args...); control != 0 {
			t.Errorf("control: %s: %v", name, control)
		}
	}
}

// TestSharedAgain: a socket whose connection has ended reaches no more than before, and an address that is
// cut short is none.
func TestSharedAgain(t *testing.T) {
	allowed, _ := echoing(t)
	other, reached := echoing(t)
	p, plan := sharedPlace(t, fmt.Sprintf("localhost:%d", allowed))
	for _, a := range [][]string{{"shared-again", fmt.Sprint(allowed), fmt.Sprint(other)}, {"shared-short", fmt.Sprint(other)}} {
		if got := p.try(t, plan, a[0], a[1:]...); got != unix.EACCES || reached.Load() != 0 {
			t.Errorf("%v: %v, %d connections", a, got, reached.Load())
		}
		if got := p.try(t, nil, a[0], a[1:]...); got != 0 {
			t.Errorf("control: %v: %v", a, got)
		}
		testkit.Eventually(t, "the control is there", func() bool { return reached.Swap(0) > 0 })
	}
}

// TestSharedFlip: an address that changes in memory leads nowhere else.
func TestSharedFlip(t *testing.T) {
	allowed, first := echoing(t)
	other, reached := echoing(t)
	p, plan := sharedPlace(t, fmt.Sprintf("localhost:%d", allowed))
	if got := p.try(t, plan, "shared-flip", fmt.Sprint(allowed), fmt.Sprint(other)); got != 0 || reached.Load() != 0 {
		t.Errorf("got %v, %d connections", got, reached.Load())
	}
	t.Logf("%d of %d reached the server that is allowed", first.Load(), flips)
	if got := p.try(t, nil, "shared-flip", fmt.Sprint(allowed), fmt.Sprint(other)); got != 0 || reached.Load() == 0 {
		t.Errorf("control: %v, %d connections", got, reached.Load())
	}
}

// TestSharedGiven: a TCP socket that a program outside passes on reaches no more than others do, also if it
// is put in the place of another one meanwhile. One of another network namespace reaches nothing.
func TestSharedGiven(t *testing.T) {
	port, reached := echoing(t)
	p, _ := sharedPlace(t, "*:443")
	path := p.out + "/giver"
	giving(t, path)
	far := p.out + "/far"
	elsewhere := givingElsewhere(t, far)
	for _, path := range []string{path, far} {
		id, mode := fileID(t, path)
		p.policy.Net.Unix = append(p.policy.Net.Unix, resolve.Path{Path: path, ID: id, Mode: mode})
	}
	for _, plan := range []*enforce.Plan{p.plan(), nil} {
		want := unixErrno(0)
		if plan != nil {
			want = unix.EACCES
		}
		for _, how := range []string{"connect", "bind", "listen"} {
			if got := p.try(t, plan, "own-given", how, path, fmt.Sprint(port)); got != want {
				t.Errorf("confined %v: %s: %v", plan != nil, how, got)
			}
		}
		if got := p.try(t, plan, "shared-swap", path, fmt.Sprint(port)); got != 0 {
			t.Errorf("confined %v: swap: %v", plan != nil, got)
		}
		if n := reached.Load(); (n == 0) != (plan != nil) {
			t.Errorf("confined %v: %d connections", plan != nil, n)
		}
	}
	if elsewhere == 0 {
		return
	}
	all, err := rule.Parse(fmt.Sprintf("localhost:%d", elsewhere), rule.Marks{})
	if err != nil {
		t.Fatal(err)
	}
	p.policy.Net.Hosts.Rules = rule.NewSet([]rule.Rule{all}, nil)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", elsewhere)) // so that the relay can dial
	if err != nil {
		t.Skip("the port is taken here: ", err)
	}
	defer l.Close()
	if got := p.try(t, p.plan(), "shared-given", far, fmt.Sprint(elsewhere)); got != unix.EACCES {
		t.Errorf("of another network: %v", got)
	}
	if got := p.try(t, nil, "shared-given", far, fmt.Sprint(elsewhere)); got != 0 {
		t.Errorf("control: %v", got)
	}
}

// givingElsewhere passes a socket of a new network namespace to whoever connects to a path. There is a
// server in it, whose port it returns; 0 for an ordinary user, who can't make it so easily.
func givingElsewhere(t *testing.T, path string) (port int) {
	t.Helper()
	if os.Getuid() != 0 {
		giving(t, path)
		return 0
	}
	made := make(chan int)
	var fd int
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			var up [40]byte
			copy(up[:], "lo")
			up[16] = unix.IFF_UP
			s, _ := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			_ = raw(unix.SYS_IOCTL, uintptr(s), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&up)))
			unix.Close(s)
			_, port, err = ownListen(localhost("127.0.0.1", 0), unix.SOCK_STREAM)
		}
		if err == nil {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		}
		if err != nil {
			port = 0
		}
		made <- port
	}()
	port = <-made
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(fd), nil)
			c.Close()
		}
	}()
	return port
}

// TestSharedStrangers: who connects to the relay and is not the session's gets nothing, is taken for nobody
// else, and stands in nobody's way.
func TestSharedStrangers(t *testing.T) {
	allowed, reached := echoing(t)
	p, plan := sharedPlace(t, fmt.Sprintf("localhost:%d", allowed))
	mine, yours := p.in+"/mine", p.in+"/yours"
	const times = 300
	wait, err := startAct(plan, p, "shared-among", mine, yours, fmt.Sprint(allowed), fmt.Sprint(times))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a connection", func() bool { _, err := os.Stat(mine); return err == nil })
	at := "127.0.0.1:" + portsIn(t, mine)[0]
	c, err := net.Dial("tcp", at)
	n := 0
	if err == nil {
		c.SetDeadline(time.Now().Add(testkit.Patience))
		_, _ = c.Write([]byte("stranger"))
		n, err = c.Read(make([]byte, 100))
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a stranger gets %d bytes, %v", n, err)
	}
	stop := make(chan struct{})
	var tries atomic.Int32
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c, err := net.Dial("tcp", at); err == nil {
					tries.Add(1)
					_, _ = c.Write([]byte("stranger"))
					c.(*net.TCPConn).SetLinger(0)
					c.Close()
				}
			}
		}()
	}
	before := time.Now()
	if err := os.WriteFile(yours, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	got := wait(t)
	close(stop)
	t.Logf("%d connections among %d strangers' in %v", times, tries.Load(), time.Since(before))
	if n := reached.Load(); got != 0 || n != times+1 {
		t.Errorf("got %d, %d connections", got, n)
	}
}

// TestSharedPort: a port to listen on that the policy has is open to others, and no other port.
func TestSharedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p, _ := sharedPlace(t, "*:443")
	p.policy.Net.BindTCP = []policy.Port{{Number: uint16(port)}}
	mine, yours := p.in+"/mine", p.in+"/yours"
	wait, err := startAct(p.plan(), p, "shared-serve", mine, yours, fmt.Sprint(port))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the server listens", func() bool { _, err := os.Stat(mine); return err == nil })
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if err := os.WriteFile(yours, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := wait(t); got != 0 {
		t.Errorf("got %d", got)
	}
	if got := p.try(t, p.plan(), "bind-tcp", fmt.Sprint(port+1)); got != unix.EACCES {
		t.Errorf("another port: %v", got)
	}
}

// hostsFile is the tests' hosts(5).
func hostsFile() []byte {
	b, _ := os.ReadFile("/etc/hosts")
	return append(bytes.TrimSpace(b), "\n127.0.0.1 "+sharedName+"\n"...)
}
