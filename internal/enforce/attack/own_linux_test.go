package attack_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
)

// localPlace returns a place without network, and its plan with the session's own network. It skips a
// test where there can be none.
func localPlace(t *testing.T) (*place, *enforce.Plan) {
	t.Helper()
	needLandlock(t, 1)
	caps := enforce.Probe()
	enforce.ProbeNamespaces(&caps)
	if why := caps.NoOwnNet(); why != "" {
		testkit.Lacks(t, testkit.UserNS, why)
	}
	p := newPlace(t)
	p.deny(p.in + "/file") // needs a mount namespace
	p.policy.Net.Mode = resolve.NetNone
	plan := p.mountPlan()
	if !ownNet(plan) {
		t.Fatal("the plan has no network of the session's own")
	}
	return p, plan
}

// TestOwnServers: without network the session reaches its own servers.
func TestOwnServers(t *testing.T) {
	p, plan := localPlace(t)
	id, mode := fileID(t, "/")
	p.policy.Net.Unix = []resolve.Path{{Path: "/", ID: id, Mode: mode}}
	allUnix := p.mountPlan() // on which the broker leaves Unix sockets to Landlock, from ABI 6 on
	for _, how := range []string{
		"127.0.0.1 from 127.0.0.1", "127.0.0.2 from 127.0.0.2", "::1 from ::1", "0.0.0.0 from 127.0.0.1",
		"0.0.0.0 from 0.0.0.0", ":: from ::1", ":: from 127.0.0.1", ":: from ::ffff:127.0.0.1", "::ffff:127.0.0.1 from 127.0.0.1",
		"unbound", "udp", "nonblocking", "go",
	} {
		if control := p.try(t, nil, "own-serve", how); control != 0 {
			t.Errorf("control: %s: %v", how, control)
		}
		if got := p.try(t, plan, "own-serve", how); got != 0 {
			t.Errorf("%s: %v", how, got)
		}
		if got := p.try(t, allUnix, "own-serve", how); got != 0 {
			t.Errorf("with all Unix sockets: %s: %v", how, got)
		}
	}
	if got := p.try(t, plan, "own-serve", "nobody"); got != unix.ECONNREFUSED {
		t.Errorf("nobody listens: %v", got)
	}
}

// TestOwnClosed: where there can be no such network, the session's own servers are closed, as all
// of the network is.
func TestOwnClosed(t *testing.T) {
	p, _ := localPlace(t)
	caps := enforce.Probe()
	caps.NetReason = "left out by the test"
	plan := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
	for _, how := range []string{"127.0.0.1 from 127.0.0.1", "unbound", "udp"} {
		if got := p.try(t, plan, "own-serve", how); got != unix.EACCES {
			t.Errorf("%s: %v", how, got)
		}
	}
}

// listening has a server outside on all addresses of the machine, and counts who connects.
func listening(t *testing.T, at string) (port int, reached *atomic.Int32) {
	t.Helper()
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", at)
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
			c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, reached
}

// TestOwnStrangers: a server that the session did not start is not reached, however localhost is
// spelled. The error is the one without a network.
func TestOwnStrangers(t *testing.T) {
	p, plan := localPlace(t)
	port, reached := listening(t, ":0")
	for _, how := range []string{
		"127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0",
		"127.0.0.1 later", "::1 later", "::ffff:127.0.0.1 later",
	} {
		if got := p.try(t, plan, "own-reach", how, fmt.Sprint(port)); got != unix.EACCES || reached.Load() != 0 {
			t.Errorf("%s: got %v, %d connections", how, got, reached.Load())
		}
		got := p.try(t, nil, "own-reach", how, fmt.Sprint(port))
		if !testkit.Within(testkit.Patience, func() bool { return reached.Swap(0) > 0 }) || got != 0 {
			t.Errorf("control: %s: %v", how, got)
		}
	}
}

// TestOwnReuse: a port that the session's server had is another program's later.
func TestOwnReuse(t *testing.T) {
	p, plan := localPlace(t)
	for _, plan := range []*enforce.Plan{plan, nil} {
		mine, yours := p.in+"/mine", p.in+"/yours"
		os.Remove(mine)
		os.Remove(yours)
		wait, err := startAct(plan, p, "own-reuse", mine, yours)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the port is free", func() bool { _, err := os.Stat(mine); return err == nil })
		ports := portsIn(t, mine)
		_, reached := listening(t, "127.0.0.1:"+ports[0])
		if err := os.WriteFile(yours, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		got := unixErrno(wait(t))
		if plan != nil && (got != unix.EACCES || reached.Load() != 0) {
			t.Errorf("got %v, %d connections", got, reached.Load())
		}
		if plan == nil && got != 0 {
			t.Errorf("control: %v", got)
		}
	}
}

func portsIn(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file + ".ports")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// TestOwnNeighbour: nothing outside reaches a server of the session, even one that listens on all
// addresses.
func TestOwnNeighbour(t *testing.T) {
	p, plan := localPlace(t)
	hosts := []string{"127.0.0.1", "::1"}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			hosts = append(hosts, ip.IP.String())
		}
	}
	for _, plan := range []*enforce.Plan{plan, nil} {
		mine, yours := p.in+"/mine", p.in+"/yours"
		os.Remove(mine)
		os.Remove(yours)
		wait, err := startAct(plan, p, "own-await", mine, yours)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the servers listen", func() bool { _, err := os.Stat(mine); return err == nil })
		reached := 0
		for _, port := range portsIn(t, mine) {
			for _, host := range hosts {
				c, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), 5*time.Second)
				if err == nil {
					reached++
					c.Close()
				}
			}
		}
		if err := os.WriteFile(yours, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if got := wait(t); got != 0 || plan != nil && reached != 0 || plan == nil && reached < 4 {
			t.Errorf("confined %v: got %d, %d connections", plan != nil, got, reached)
		}
	}
}

// TestOwnFlip: an address that changes in memory leads nowhere else.
func TestOwnFlip(t *testing.T) {
	p, plan := localPlace(t)
	port, reached := listening(t, "127.0.0.1:0")
	if got := p.try(t, plan, "own-flip", fmt.Sprint(port)); got != 0 || reached.Load() != 0 {
		t.Errorf("got %v, %d connections", got, reached.Load())
	}
	if got := p.try(t, nil, "own-flip", fmt.Sprint(port)); got != 0 || reached.Load() == 0 {
		t.Errorf("control: %v, %d connections", got, reached.Load())
	}
}

// TestOwnGiven: a TCP socket of the machine's network that a program outside passes on gets no peer
// and does not listen.
func TestOwnGiven(t *testing.T) {
	p, _ := localPlace(t)
	port, reached := listening(t, "127.0.0.1:0")
	path := p.out + "/giver"
	giving(t, path)
	id, mode := fileID(t, path)
	p.policy.Net.Unix = []resolve.Path{{Path: path, ID: id, Mode: mode}}
	for _, plan := range []*enforce.Plan{p.mountPlan(), nil} {
		want := unixErrno(0)
		if plan != nil {
			want = unix.EACCES
		}
		for _, how := range []string{"connect", "own", "bind", "listen"} {
			if got := p.try(t, plan, "own-given", how, path, fmt.Sprint(port)); got != want {
				t.Errorf("confined %v: %s: %v", plan != nil, how, got)
			}
		}
		if got := p.try(t, plan, "own-swap", path, fmt.Sprint(port)); got != 0 {
			t.Errorf("confined %v: swap: %v", plan != nil, got)
		}
		if n := reached.Load(); (n == 0) != (plan != nil) {
			t.Errorf("confined %v: %d connections", plan != nil, n)
		}
	}
}

// giving passes a TCP socket to whoever connects to a path.
func giving(t *testing.T, path string) {
	t.Helper()
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
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(fd), nil)
				unix.Close(fd)
			}
			c.Close()
		}
	}()
}

// TestOwnDatagrams: datagrams arrive at no server outside, whatever the kernel finds in memory.
func TestOwnDatagrams(t *testing.T) {
	p, plan := localPlace(t)
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
	for _, how := range []string{"sendto", "connected", "pktinfo", "device", "many", "::1", "::ffff:127.0.0.1"} {
		got := p.try(t, plan, "own-udp", how, port)
		time.Sleep(10 * time.Millisecond)
		if reached.Load() != 0 {
			t.Errorf("%s: got %v, and it arrived", how, got)
		}
		control := p.try(t, nil, "own-udp", how, port)
		if !testkit.Within(testkit.Patience, func() bool { return reached.Swap(0) > 0 }) || control != 0 {
			t.Errorf("control: %s: %v", how, control)
		}
	}
}

// TestOwnDevice: the command reads the addresses of the session's network, and can't change it.
func TestOwnDevice(t *testing.T) {
	p, plan := localPlace(t)
	for _, how := range []string{"ioctl", "netlink"} {
		if got := p.try(t, plan, "own-lo", how); got != unix.EPERM {
			t.Errorf("%s: %v", how, got)
		}
		if control := p.try(t, nil, "own-lo", how); control != 0 && os.Getuid() == 0 {
			t.Errorf("control: %s: %v", how, control)
		}
	}
	if got := p.try(t, plan, "netlink"); got != 0 {
		t.Errorf("reading: %v", got)
	}
}

// TestOwnCrowd: connections that wait keep no other call from its answer.
func TestOwnCrowd(t *testing.T) {
	p, plan := localPlace(t)
	for _, plan := range []*enforce.Plan{plan, nil} {
		if got := p.try(t, plan, "own-crowd"); got != 0 {
			t.Errorf("confined %v: %v", plan != nil, got)
		}
	}
}

// TestOwnWaiting: connections wait, time out and are interrupted as with a network.
func TestOwnWaiting(t *testing.T) {
	testkit.NeedProgram(t, "/usr/bin/python3")
	p, plan := localPlace(t)
	if err := os.WriteFile(p.in+"/wait.py", []byte(waitScript), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out := p.sh(t, plan, "/usr/bin/python3 wait.py")
	const want = "interrupted\nnonblocking 11\ntimeout 11\nwaited\ntcp interrupted\ntcp refused"
	if status != 0 || out != want {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}
