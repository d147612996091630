package enforce_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// stdinSocket is an act by a socket that is standard input.
func stdinSocket(t *testing.T, p *place, domain, kind int, act, arg string) *fork.Command {
	t.Helper()
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { f.Close() })
	return &fork.Command{Path: self(t), Args: []string{self(t), arg}, Dir: p.in,
		Env: []string{"ZSBX_TEST_ACT=" + act}, Files: []*os.File{f, os.Stdout, os.Stderr}}
}

// TestDatagramStdin: a datagram socket that the command would be started with
// sends to anybody, so the command is not started with it.
func TestDatagramStdin(t *testing.T) {
	needMediation(t)
	p := newPlace(t)
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: p.out + "/dgram", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	start := func() *fork.Command {
		return stdinSocket(t, p, unix.AF_UNIX, unix.SOCK_DGRAM, "stdin-send", p.out+"/dgram")
	}
	if got := runFiles(t, nil, start()); got != 0 {
		t.Fatalf("without zsbx: errno %d", got)
	}
	if _, err := p.plan().Confine(start()); err == nil || !strings.Contains(err.Error(), "descriptor 0") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// TestInternetStdin: likewise for sockets of the internet while it is closed.
func TestInternetStdin(t *testing.T) {
	p := newPlace(t)
	sock, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	port := strconv.Itoa(sock.LocalAddr().(*net.UDPAddr).Port)
	udp := func() *fork.Command { return stdinSocket(t, p, unix.AF_INET, unix.SOCK_DGRAM, "stdin-udp", port) }
	if got := runFiles(t, nil, udp()); got != 0 {
		t.Fatalf("without zsbx: errno %d", got)
	}
	if got := runFiles(t, p.plan(), udp()); got != 0 {
		t.Errorf("with the network open: errno %d", got)
	}
	for _, mode := range []policy.NetMode{policy.NetNone, policy.NetPorts} {
		p.policy.Net.Mode = mode
		for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
			c := stdinSocket(t, p, unix.AF_INET, kind, "stdin-udp", port)
			if _, err := p.plan().Confine(c); err == nil || !strings.Contains(err.Error(), "descriptor 0") {
				t.Errorf("%v, kind %d: got %v, want a refusal", mode, kind, err)
			}
		}
	}
}

// TestConnectedStdin: a connection that the caller made is the caller's to pass.
func TestConnectedStdin(t *testing.T) {
	p := newPlace(t)
	p.policy.Net.Mode = policy.NetNone
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	f, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := command(p, "exit 7")
	c.Files = []*os.File{f}
	if got := runFiles(t, p.stdinPlan(), c); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
}

// TestCoveredStdin: a descriptor leads to a file beside the mount that keeps
// the command from it, and /proc/self/fd opens it anew.
func TestCoveredStdin(t *testing.T) {
	needMounts(t)
	const again = `echo evil >>/proc/self/fd/0 && grep -q evil %s`
	for _, a := range []struct {
		name, file, want string
		flags            int
	}{
		{"a protected file", ".git/config", "is protected", unix.O_RDONLY},
		{"a file in a protected directory", ".git/hooks/pre-commit.sample", "is protected", unix.O_RDONLY},
		{"a reference to a protected file", ".git/config", "is protected", unix.O_PATH},
		{"a denied file", "keys/id", "is denied", unix.O_RDONLY},
		{"a denied file, to be written", "keys/id", "is denied", unix.O_WRONLY},
		{"any other file", ".git/HEAD", "", unix.O_RDONLY},
		{"a protected file, to be written", ".envrc", "", unix.O_WRONLY | unix.O_APPEND},
	} {
		t.Run(a.name, func(t *testing.T) {
			start := func() (*place, *fork.Command) {
				p := repository(t)
				write(t, p.in+"/keys/id", "secret\n")
				p.deny(p.in + "/keys")
				fd, err := unix.Open(p.in+"/"+a.file, a.flags|unix.O_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				f := os.NewFile(uintptr(fd), a.file)
				t.Cleanup(func() { f.Close() })
				c := command(p, fmt.Sprintf(again, a.file))
				c.Files = []*os.File{f}
				return p, c
			}
			_, c := start()
			if got := runFiles(t, nil, c); got != 0 {
				t.Fatalf("control: exit status %d", got)
			}
			p, c := start()
			if a.want == "" {
				c.Args[2] = "true"
				if got := runFiles(t, p.mountPlan(), c); got != 0 {
					t.Errorf("exit status %d", got)
				}
				return
			}
			if _, err := p.mountPlan().Confine(c); err == nil || !strings.Contains(err.Error(), a.want) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}
