package attack_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// stdinSocket does an act with a socket as standard input.
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

// TestDatagramStdin: the command is not started with a datagram socket, since that could send
// to any program.
func TestDatagramStdin(t *testing.T) {
	needBroker(t)
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

// TestInternetStdin: the same for internet sockets if the network is closed.
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
	for _, mode := range []resolve.NetMode{resolve.NetNone, resolve.NetPorts} {
		p.policy.Net.Mode = mode
		for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
			c := stdinSocket(t, p, unix.AF_INET, kind, "stdin-udp", port)
			if _, err := p.plan().Confine(c); err == nil || !strings.Contains(err.Error(), "descriptor 0") {
				t.Errorf("%v, kind %d: got %v, want a refusal", mode, kind, err)
			}
		}
	}
}

// TestConnectedStdin: the caller may pass a connection that it made, if there is a network.
func TestConnectedStdin(t *testing.T) {
	p := newPlace(t)
	p.policy.Net = resolve.ResolvedNet{Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: 1}}}
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

// TestCoveredStdin: a descriptor of a covered file would bypass the mount, and /proc/self/fd
// could reopen it.
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

// TestNullStdin: root can't change /dev/null through descriptor 0, which is of use all the same.
func TestNullStdin(t *testing.T) {
	needMounts(t)
	null := t.TempDir() + "/null"
	if err := unix.Mknod(null, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Skip("only root can make a device to try this on:", err)
	}
	for name, plan := range map[string]*enforce.Plan{"control": nil, "mounts": newPlace(t).mountPlan()} {
		f, err := os.OpenFile(null, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := command(newPlace(t), "chmod 600 /proc/self/fd/0; test -z \"$(cat)\"")
		c.Files = []*os.File{f}
		if got := runFiles(t, plan, c); got != 0 {
			t.Errorf("%s: exit status %d", name, got)
		}
		var st unix.Stat_t
		if err := unix.Stat(null, &st); err != nil || st.Mode&0o777 == 0o600 != (plan == nil) {
			t.Errorf("%s: mode %#o, %v", name, st.Mode, err)
		}
		if err := os.Chmod(null, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReopen: descriptors can be reopened through /dev/stdin and so on, with the access that
// they have, and their files can't be changed in any other way.
func TestReopen(t *testing.T) {
	needLandlock(t, 1)
	const own = "/proc/self/fd/0"
	for _, a := range []struct {
		name, script string
		flags        int
		works        bool
	}{
		{"read", "cat " + own, unix.O_RDONLY, true},
		{"read what is only written", "cat " + own, unix.O_WRONLY, false},
		{"read by a reference", "cat " + own, unix.O_PATH, false},
		{"write", "echo x >>" + own, unix.O_WRONLY, true},
		{"empty", "echo x >" + own, unix.O_WRONLY | unix.O_APPEND, true},
		{"write what is only read", "echo x >>" + own, unix.O_RDONLY, false},
		{"read and write", "cat " + own + " && echo x >>" + own, unix.O_RDWR, true},
		{"execute", own, unix.O_RDONLY, false},
		{"execute by its name", "$OUT/file", unix.O_RDONLY, false},
		{"link", "ln -L " + own + " link", unix.O_RDWR, false},
		{"link its name", "ln $OUT/file link", unix.O_RDWR, false},
		{"rename", "mv $OUT/file $OUT/new", unix.O_RDWR, false},
		{"remove", "rm $OUT/file", unix.O_RDWR, false},
		{"make another", "echo x >$OUT/new", unix.O_RDWR, false},
		{"read what is denied", "cat " + own, unix.O_RDWR, false},
		{"a FIFO", "echo x >" + own, unix.O_RDWR, true},
		{"a terminal that is a new one each time", "exec 3<>" + own, unix.O_RDWR, false},
	} {
		for name, plan := range map[string]func(*place) *enforce.Plan{"free": nil, "Landlock": (*place).plan, "mounts": (*place).mountPlan} {
			t.Run(a.name+"/"+name, func(t *testing.T) {
				if name == "mounts" {
					needMounts(t)
				}
				p := newPlace(t)
				file := p.out + "/file"
				write(t, file, "#!/bin/true\n")
				if err := os.Chmod(file, 0o755); err != nil {
					t.Fatal(err)
				}
				switch a.name {
				case "read what is denied":
					p.deny(p.out)
				case "a FIFO":
					file = p.out + "/fifo"
					if unix.Mkfifo(file, 0o600) != nil {
						t.Fatal("mkfifo")
					}
				case "a terminal that is a new one each time":
					file = "/dev/ptmx"
				}
				f, err := os.OpenFile(file, a.flags, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				c := command(p, "exec >/dev/null 2>&1; "+a.script)
				c.Env = append(c.Env, "OUT="+p.out)
				c.Files = []*os.File{f}
				if plan == nil {
					if got := runFiles(t, nil, c); got != 0 {
						t.Errorf("control: exit status %d", got)
					}
				} else if got := runFiles(t, plan(p), c); (got == 0) != a.works {
					t.Errorf("exit status %d, works: %v", got, a.works)
				}
			})
		}
	}
}
