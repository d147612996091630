package attack_test

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// nameServer is the one in the tests' resolv.conf(5). nobody is one that no test has.
var nameServer, nobody = [4]byte{127, 0, 0, 77}, [4]byte{127, 0, 0, 78}

// readFile is os.ReadFile, except for the machine's name servers.
func readFile(name string) ([]byte, error) {
	if name == "/etc/resolv.conf" {
		return []byte("# x\nnameserver 127.0.0.77\nnameserver fe80::1%eth0\n"), nil
	}
	if name == "/etc/hosts" {
		return hostsFile(), nil
	}
	return os.ReadFile(name)
}

// sendAll sends a word to a port in all possible ways.
func sendAll(a []string) error {
	to4, to6 := &unix.SockaddrInet4{Port: num(a[0]), Addr: loop4}, &unix.SockaddrInet6{Port: num(a[0]), Addr: mapped}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		var to, ns unix.Sockaddr = to4, &unix.SockaddrInet4{Port: 53, Addr: nameServer}
		if family == unix.AF_INET6 {
			to, ns = to6, &unix.SockaddrInet6{Port: 53, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 77}}
		}
		for _, first := range []unix.Sockaddr{nil, ns} {
			fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
			if err != nil {
				return err
			}
			if first != nil {
				if err := unix.Connect(fd, first); err != nil {
					return fmt.Errorf("%w", err)
				}
			}
			_ = unix.Sendto(fd, []byte("sendto"), 0, to)
			_, _ = unix.SendmsgN(fd, []byte("sendmsg"), nil, to, 0)
			if unix.Connect(fd, to) == nil {
				_, _ = unix.Write(fd, []byte("write"))
			}
			_, _ = unix.Write(fd, []byte("after a refusal"))
			unix.Close(fd)
		}
	}
	return nil
}

// askNames asks a name server by UDP, and connects to it by TCP. The one named nobody must be
// refused.
func askNames([]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 53, Addr: nobody}); err != unix.EACCES {
		return unix.EADDRINUSE
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 54, Addr: nameServer}); err != unix.EACCES {
		return unix.EADDRINUSE
	}
	if err := connect(unix.AF_INET, 0, &unix.SockaddrInet4{Port: 53, Addr: nobody}); err != unix.EACCES {
		return unix.EADDRINUSE
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 53, Addr: nameServer}); err != nil {
		return err
	}
	buf := make([]byte, 100)
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Write(fd, []byte("question")); err != nil {
		return err
	}
	if n, err := unix.Poll(p, int(testkit.Patience.Milliseconds())); n != 1 || err != nil {
		return unix.ETIMEDOUT
	}
	if n, err := unix.Read(fd, buf); err != nil || string(buf[:n]) != "answer to question" {
		return unix.EBADMSG
	}
	return connect(unix.AF_INET, 0, &unix.SockaddrInet4{Port: 53, Addr: nameServer})
}

// onPorts returns a place with one TCP port to connect to.
func onPorts(t *testing.T) *place {
	t.Helper()
	needPorts(t)
	if c := enforce.Probe(); !c.SeccompNotify {
		testkit.Lacks(t, testkit.Seccomp, c.SeccompNotifyReason)
	}
	p := newPlace(t)
	p.policy.Net = resolve.ResolvedNet{Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: 443}}}
	return p
}

// TestNothingButNames: if a command may ask name servers, no way of sending by UDP reaches
// another address.
func TestNothingButNames(t *testing.T) {
	p := onPorts(t)
	witness, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IP(loop4[:])})
	if err != nil {
		t.Fatal(err)
	}
	defer witness.Close()
	got := func(wait time.Duration, most int) (n int) {
		buf := make([]byte, 100)
		witness.SetReadDeadline(time.Now().Add(wait))
		for ; n < most; n++ {
			if _, err := witness.Read(buf); err != nil {
				break
			}
		}
		return n
	}
	port := fmt.Sprint(witness.LocalAddr().(*net.UDPAddr).Port)
	if errno := p.try(t, p.plan(), "udp-all", port); errno != 0 {
		t.Errorf("got %v", errno)
	}
	if n := got(300*time.Millisecond, 1); n != 0 {
		t.Error("a packet left")
	}
	if errno := p.try(t, nil, "udp-all", port); errno != 0 {
		t.Fatalf("control: %v", errno)
	}
	if n := got(testkit.Patience, 12); n < 12 {
		t.Errorf("control: %d packets arrived", n)
	}
}

// TestNameServers: a name server can be asked, by UDP and TCP, only at its own port.
func TestNameServers(t *testing.T) {
	p := onPorts(t)
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IP(nameServer[:]), Port: 53})
	if err != nil {
		t.Skip("only root has port 53: ", err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp4", "127.0.0.77:53")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(append([]byte("answer to "), buf[:n]...), from)
		}
	}()
	if errno := p.try(t, p.plan(), "ask"); errno != 0 {
		t.Errorf("got %v", errno)
	}
	p.policy.Net.ConnectTCP, p.policy.Net.BindTCP = nil, []policy.Port{{Number: 8080}}
	if errno := p.try(t, p.plan(), "ask"); errno != acces {
		t.Errorf("without a port to connect to: %v", errno)
	}
}
