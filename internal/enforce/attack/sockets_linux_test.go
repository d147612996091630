package attack_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// needBroker skips a test if the kernel checks sockets itself, or if nothing can.
func needBroker(t testing.TB) {
	t.Helper()
	if brokerChecks() {
		return
	}
	c := enforce.Probe()
	testkit.NeedLandlock(t, c.Landlock, 1, c.LandlockReason)
	if c.Landlock < 9 {
		testkit.Lacks(t, testkit.Seccomp, c.SeccompReason, c.SeccompNotifyReason)
	}
	t.Skip("Landlock checks sockets here")
}

// needGuard skips a test if neither the kernel nor the broker checks sockets.
func needGuard(t testing.TB) {
	t.Helper()
	if enforce.Probe().Landlock < 9 {
		needBroker(t)
	}
}

// daemon is a program outside that counts how often it is reached.
type daemon struct {
	network, path string
	reached       atomic.Int64
	asked         chan struct{}
}

// listenOutside starts a daemon on a socket. network is unix, unixpacket or unixgram.
func listenOutside(t testing.TB, network, path string) *daemon {
	t.Helper()
	d := &daemon{network: network, path: path, asked: make(chan struct{})}
	if network == "unixgram" {
		c, err := net.ListenUnixgram(network, &net.UnixAddr{Name: path, Net: network})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			for {
				b := make([]byte, 16)
				n, _, err := c.ReadFrom(b)
				switch {
				case err != nil:
					return
				case string(b[:n]) == ask:
					d.asked <- struct{}{}
				default:
					d.reached.Add(1)
				}
			}
		}()
		return d
	}
	l, err := net.Listen(network, path)
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
			d.reached.Add(1)
			c.Close()
		}
	}()
	return d
}

// ask is what a test sends to a daemon to ask for its count.
const ask = "how often?"

// count returns how often a daemon was reached, after all earlier messages were counted.
func (d *daemon) count(t *testing.T) int64 {
	t.Helper()
	c, err := net.Dial(d.network, d.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if d.network == "unixgram" {
		if _, err := c.Write([]byte(ask)); err != nil {
			t.Fatal(err)
		}
		<-d.asked
		return d.reached.Load()
	}
	_, _ = c.Read(make([]byte, 1)) // until the daemon closes it
	return d.reached.Add(-1)       // itself
}

// attackDaemon makes an attack with and without zsbx, and returns how often each reached the
// daemon.
func attackDaemon(t *testing.T, p *place, d *daemon, act string, args ...string) (answer unixErrno, inside, control int64) {
	t.Helper()
	answer = p.try(t, p.plan(), act, args...)
	inside = d.count(t)
	os.RemoveAll(p.in)
	os.Mkdir(p.in, 0o755)
	if got := p.try(t, nil, act, args...); got != 0 {
		t.Fatalf("control: without zsbx: %v", got)
	}
	return answer, inside, d.count(t) - inside
}

// TestSocketSpellings: a socket outside is refused however its address is
// written.
func TestSocketSpellings(t *testing.T) {
	needGuard(t)
	for _, act := range []string{"reach", "reach-seq", "reach-nonblock"} {
		for _, how := range []string{"plain", "zero", "relative", "full", "link", "dirlink", "cwd", "proc-root",
			"proc-cwd", "proc-dir", "proc-fd", "proc-pid", "dev-fd", "abstract"} {
			t.Run(act+" "+how, func(t *testing.T) {
				p := newPlace(t)
				target, want := p.out+"/sock", unix.EACCES
				name := target
				if how == "abstract" {
					target, want = fmt.Sprintf("zsbx-test-%d", os.Getpid()), unix.EPERM
					if brokerChecks() {
						want = unix.ECONNREFUSED // as if nobody had the name
					}
					name = "@" + target
				}
				network := "unix"
				if act == "reach-seq" {
					network = "unixpacket"
				}
				d := listenOutside(t, network, name)
				got, inside, control := attackDaemon(t, p, d, act, how, target)
				if got != want || inside != 0 {
					t.Errorf("got %v, want %v; %d connections", got, want, inside)
				}
				if control == 0 {
					t.Error("control: nothing arrived")
				}
			})
		}
	}
}

// TestSocketAttacks: other ways to a stream socket outside are refused, too.
func TestSocketAttacks(t *testing.T) {
	needGuard(t)
	for _, tt := range []struct {
		act  string
		args []string
		want []unixErrno
	}{
		{"pass", []string{"OUT/sock"}, one(unix.EACCES)},
		{"link-socket", []string{"OUT/sock", "IN/link"}, one(unix.EXDEV, unix.EACCES)},
	} {
		t.Run(tt.act, func(t *testing.T) {
			p := newPlace(t)
			d := listenOutside(t, "unix", p.out+"/sock")
			checkAttack(t, p, d, tt.want, tt.act, p.fill(tt.args)...)
		})
	}
	// Here the socket outside is in a directory that the command may write.
	for _, act := range []string{"move-socket", "move-listen"} {
		t.Run(act, func(t *testing.T) {
			p := newPlace(t)
			d := listenOutside(t, "unix", p.in+"/sub/theirs")
			got := p.try(t, p.plan(), act, p.in+"/sub/theirs", p.in+"/sub/own")
			inside := d.reached.Load()
			if got != unix.EACCES || inside != 0 {
				t.Errorf("got %v, %d connections", got, inside)
			}
			os.Remove(p.in + "/sub/own")
			if got := p.try(t, nil, act, p.in+"/sub/theirs", p.in+"/sub/own"); got != 0 {
				t.Errorf("control: %v", got)
			}
		})
	}
}

// TestSocketMovedToAllowed: a socket outside in a writable directory does not become allowed if
// the command moves it into an allowed directory, or makes a new allowed directory.
func TestSocketMovedToAllowed(t *testing.T) {
	needGuard(t)
	needMounts(t)
	p := newPlace(t)
	id, mode := fileID(t, p.in+"/sub")
	p.policy.Net.Unix = []resolve.Path{{Path: p.in + "/sub", ID: id, Mode: mode}}
	d := listenOutside(t, "unix", p.in+"/theirs")
	plan := p.mountPlan()
	if got := p.try(t, plan, "move-socket", p.in+"/theirs", p.in+"/sub/own"); got != unix.EXDEV || d.reached.Load() != 0 {
		t.Errorf("got %v, %d connections", got, d.reached.Load())
	}
	const anew = "mv sub old && mkdir sub"
	if _, out := p.sh(t, plan, anew); !strings.Contains(out, "busy") {
		t.Errorf("%s: %q", anew, out)
	}
	os.Remove(p.in + "/sub/own")
	if got := p.try(t, nil, "move-socket", p.in+"/theirs", p.in+"/sub/own"); got != 0 {
		t.Errorf("control: %v", got)
	}
	testkit.Eventually(t, "the control arrives", func() bool { return d.reached.Load() > 0 })
	if _, out := p.sh(t, nil, anew); out != "" {
		t.Errorf("control: %q", out)
	}
}

func checkAttack(t *testing.T, p *place, d *daemon, want []unixErrno, act string, args ...string) {
	t.Helper()
	got, inside, control := attackDaemon(t, p, d, act, args...)
	right := false
	for _, w := range want {
		right = right || got == w
	}
	if !right || inside != 0 {
		t.Errorf("got %v, want %v; %d times reached", got, want, inside)
	}
	if control == 0 {
		t.Error("control: nothing arrived")
	}
}

// TestSocketDatagrams: no call can send a datagram outside.
func TestSocketDatagrams(t *testing.T) {
	needGuard(t)
	for _, act := range []string{"dgram", "dgram-pair"} {
		for _, how := range []string{"sendto", "sendmsg", "sendmmsg", "connect"} {
			t.Run(act+" "+how, func(t *testing.T) {
				want := unix.EACCES
				switch {
				case brokerChecks() && act == "dgram":
					want = unix.ESOCKTNOSUPPORT
				case brokerChecks() && how != "connect":
					want = 0 // it goes to the other end
				}
				p := newPlace(t)
				d := listenOutside(t, "unixgram", p.out+"/sock")
				checkAttack(t, p, d, one(want), act, how, p.out+"/sock")
			})
		}
	}
}

// TestSocketPairs: a pair of datagram sockets works, and reaches nothing but its other end,
// whatever is done to it.
func TestSocketPairs(t *testing.T) {
	needGuard(t)
	plans := map[string]func(p *place) *enforce.Plan{
		"open": func(p *place) *enforce.Plan { return p.plan() },
		"none": func(p *place) *enforce.Plan { p.policy.Net.Mode = resolve.NetNone; return p.plan() },
		"ports": func(p *place) *enforce.Plan {
			p.policy.Net = resolve.ResolvedNet{Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: 443}}}
			return p.plan()
		},
	}
	if caps := enforce.Probe(); caps.MountNS {
		plans["mounts"] = (*place).mountPlan
		plans["pids"] = func(p *place) *enforce.Plan { p.policy.Private.Pids.Value = "private"; return p.mountPlan() }
	}
	for name, make := range plans {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			plan := make(p)
			if got := p.try(t, plan, "pair-works"); got != 0 {
				t.Errorf("it does not work: %v", got)
			}
			gram := listenOutside(t, "unixgram", p.out+"/gram")
			packet := listenOutside(t, "unixpacket", p.out+"/packet")
			stream := listenOutside(t, "unix", p.out+"/stream")
			abstract := listenOutside(t, "unixgram", fmt.Sprintf("@zsbx-pair-%s-%d", name, os.Getpid()))
			all := []*daemon{gram, packet, stream, abstract}
			for _, how := range []string{"plain", "raw", "passed", "alone", "shut", "bound", "apart", "listening", "opened"} {
				for _, d := range all {
					got := p.try(t, plan, "pair-way", how, d.path)
					if got == 0 {
						t.Errorf("%s to %s: it worked", how, d.path)
					}
				}
				for _, d := range all {
					if n := d.count(t); n != 0 {
						t.Errorf("%s: %s was reached %d times", how, d.path, n)
					}
				}
				if got := p.try(t, nil, "pair-way", how, gram.path); got != 0 {
					t.Errorf("control: %s: %v", how, got)
				}
				if gram.count(t) == 0 {
					t.Errorf("control: %s: nothing arrived", how)
				}
				gram.reached.Store(0)
			}
		})
	}
	if got := newPlace(t).try(t, nil, "pair-works"); got != 0 {
		t.Errorf("control: %v", got)
	}
}

// TestSocketAllPaths: if every socket by path is allowed, datagrams are, too, but abstract
// names of others are not.
func TestSocketAllPaths(t *testing.T) {
	needBroker(t)
	needLandlock(t, 6)
	p := newPlace(t)
	p.policy.Net.Unix = []resolve.Path{{Path: "/", Mode: fs.ModeDir}}
	path := listenOutside(t, "unixgram", p.out+"/sock")
	name := fmt.Sprintf("@zsbx-all-%d", os.Getpid())
	abstract := listenOutside(t, "unixgram", name)
	for _, how := range []string{"sendto", "sendmsg", "sendmmsg", "connect"} {
		for _, act := range []string{"dgram", "dgram-pair"} {
			if got := p.try(t, p.plan(), act, how, p.out+"/sock"); got != 0 {
				t.Errorf("%s %s: %v", act, how, got)
			}
			if how == "sendmmsg" { // the act only supports paths
				continue
			}
			if got := p.try(t, p.plan(), act, how, name); got != unix.EPERM || abstract.reached.Load() != 0 {
				t.Errorf("%s %s to an abstract name: %v, %d times reached", act, how, got, abstract.reached.Load())
			}
			if got := p.try(t, nil, act, how, name); got != 0 {
				t.Errorf("control: %s %s: %v", act, how, got)
			}
			testkit.Eventually(t, "the control arrives", func() bool { return abstract.reached.Load() > 0 })
			abstract.reached.Store(0)
		}
	}
	testkit.Eventually(t, "something arrives by path", func() bool { return path.reached.Load() > 0 })
}

// TestSocketOddAddresses: an invalid address gets the kernel's own answer.
func TestSocketOddAddresses(t *testing.T) {
	needBroker(t)
	p := newPlace(t)
	if err := unix.Mkfifo(p.in+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.in + "/left", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	plan := p.plan()
	for _, args := range [][]string{
		{"raw-length", "/x", "0"}, {"raw-length", "/x", "1"}, {"raw-length", "/x", "2"}, {"raw-length", "/x", "-1"},
		{"raw-length", "/x", "111"}, {"raw-length", "/x", "128"}, {"raw-length", "/x", "129"}, {"raw-length", p.in + "/none", "110"},
		{"unspec"}, {"not-socket", p.in + "/fifo"}, {"not-socket", p.in + "/file"}, {"not-socket", p.in},
		{"not-socket", p.in + "/file/x"}, {"not-socket", p.in + "/left"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			want := p.try(t, nil, args[0], args[1:]...)
			if got := p.try(t, plan, args[0], args[1:]...); got != want {
				t.Errorf("got %v, want %v as without zsbx", got, want)
			}
		})
	}
}
