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
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestSocketReuse: a socket outside is not mistaken for one that the session had, by its inode
// or by its name.
func TestSocketReuse(t *testing.T) {
	needGuard(t)
	taken := unix.ECONNREFUSED
	if !brokerChecks() {
		taken = unix.EPERM // Landlock knows whose it is
	}
	for _, tt := range []struct {
		act, name string
		want      unixErrno
	}{
		{"inherit-ino", "IN/sub/sock", unix.EACCES},
		{"own-name", fmt.Sprintf("@zsbx-reuse-%d", os.Getpid()), taken},
	} {
		for _, control := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s control=%v", tt.act, control), func(t *testing.T) {
				p := newPlace(t)
				name := p.fill([]string{tt.name})[0]
				mine, yours := p.in+"/mine", p.in+"/yours"
				go func() {
					if !testkit.Within(testkit.Patience, func() bool { _, err := os.Stat(mine); return err == nil }) {
						return
					}
					l, err := net.Listen("unix", name)
					if err == nil {
						go acceptAll(l)
						t.Cleanup(func() { l.Close() })
					}
					os.WriteFile(yours, nil, 0o666)
				}()
				plan, want := p.plan(), tt.want
				if control {
					plan, want = nil, 0
				}
				if got := p.try(t, plan, tt.act, name, mine, yours); got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		}
	}
}

// TestSocketTwin: a socket outside is not mistaken for one of the session whose file has the
// same inode number on another file system.
func TestSocketTwin(t *testing.T) {
	needGuard(t)
	p := newPlace(t)
	for _, dir := range []string{p.in, p.out} {
		dir += "/fs"
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
			if os.Geteuid() != 0 {
				t.Skip("mounting needs root")
			}
			testkit.Lacks(t, testkit.UserNS, "mount: ", err)
		}
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	}
	for i := range 20 {
		if err := os.WriteFile(fmt.Sprintf("%s/fs/%d", p.out, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := listenOutside(t, "unix", p.out+"/fs/sock")
	got := p.try(t, p.plan(), "twin-inode", p.out+"/fs/sock", p.in+"/fs")
	if inside := d.reached.Load(); got != unix.EACCES || inside != 0 {
		t.Errorf("got %v, want %v; %d connections", got, unix.EACCES, inside)
	}
	unix.Unmount(p.in+"/fs", unix.MNT_DETACH)
	if err := unix.Mount("none", p.in+"/fs", "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if got := p.try(t, nil, "twin-inode", p.out+"/fs/sock", p.in+"/fs"); got != 0 {
		t.Errorf("control: %v", got)
	}
}

// TestSocketRaces: nothing that another thread swaps meanwhile leads outside.
func TestSocketRaces(t *testing.T) {
	needGuard(t)
	port := serveTCP(t)
	for _, tt := range []struct {
		act  string
		args []string
	}{
		{"race-memory", []string{"OUT/sock", "IN/own"}},
		{"race-fd", []string{"OUT/sock", fmt.Sprint(port)}},
		{"race-link", []string{"OUT/sock", "IN/own"}},
		{"race-cwd", []string{"OUT/sock", "IN/sock"}},
	} {
		t.Run(tt.act, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			d := listenOutside(t, "unix", p.out+"/sock")
			// On a busy machine the other thread may get no turn at the right moment.
			if !testkit.Within(testkit.Patience, func() bool {
				got, inside, control := attackDaemon(t, p, d, tt.act, p.fill(tt.args)...)
				if got != 0 || inside != 0 {
					t.Errorf("got %v; %d times reached", got, inside)
				}
				return control > 0 || t.Failed()
			}) {
				t.Error("control: nothing arrived")
			}
		})
	}
}

// TestSocketStart: a daemon outside that begins to listen is not mistaken for a socket of the
// session that does so at the same time.
func TestSocketStart(t *testing.T) {
	needGuard(t)
	p := newPlace(t)
	target := p.out + "/sock"
	var reached atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-ended })
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Remove(target)
			fd, err := bindOwn(target)
			if err != nil {
				continue
			}
			time.Sleep(time.Millisecond) // as a daemon that sets the mode of its socket's file
			unix.Listen(fd, 8)
			unix.SetNonblock(fd, true)
			for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); {
				if c, _, err := unix.Accept(fd); err == nil {
					reached.Add(1)
					unix.Close(c)
				}
			}
			unix.Close(fd)
		}
	}()
	if got := p.try(t, p.plan(), "race-start", target, p.in+"/sub"); got != 0 || reached.Load() != 0 {
		t.Errorf("got %v; %d times reached", got, reached.Load())
	}
	if got := p.try(t, nil, "race-start", target, p.in+"/sub"); got != 0 || reached.Load() == 0 {
		t.Errorf("control: %v; %d times reached", got, reached.Load())
	}
}

// TestSocketMountNamespace: a command with a mount namespace reaches its own sockets, in any
// spelling, and no others.
func TestSocketMountNamespace(t *testing.T) {
	needGuard(t)
	caps := enforce.Probe()
	enforce.ProbeNamespaces(&caps)
	if !caps.MountNS {
		testkit.Lacks(t, testkit.UserNS, caps.MountReason)
	}
	p := newPlace(t)
	p.deny(p.in + "/file")
	plan := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
	d := listenOutside(t, "unix", p.out+"/sock")
	for _, how := range []string{"plain", "relative", "link", "proc-dir", "proc-fd", "dev-fd"} {
		os.Remove(p.in + "/link")
		if got := p.try(t, plan, "reach", how, p.out+"/sock"); got != unix.EACCES || d.reached.Load() != 0 {
			t.Errorf("%s: got %v, %d connections", how, got, d.reached.Load())
		}
		os.Remove(p.in + "/link")
		os.Remove(p.in + "/own")
		want := unixErrno(0)
		if brokerChecks() && (strings.HasPrefix(how, "proc-") || how == "dev-fd") {
			want = unix.EACCES // the broker follows no magic links of /proc
		}
		if got := p.try(t, plan, "reach-own", how, p.in+"/own"); got != want {
			t.Errorf("%s, own: %v", how, got)
		}
	}
	for _, how := range []string{"plain", "relative", "link", "proc-dir", "proc-fd", "dev-fd"} {
		os.Remove(p.in + "/link")
		if got := p.try(t, nil, "reach", how, p.out+"/sock"); got != 0 {
			t.Errorf("control: %s: %v", how, got)
		}
	}
}
