package enforce_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/internal/testkit"
)

// needApart skips a test where sockets of a command that replaces this process
// are not judged.
func needApart(t *testing.T) {
	t.Helper()
	needGuard(t)
	if c := enforce.Probe(); mediated() && c.SeccompNotifyApart != "" {
		testkit.Lacks(t, testkit.Seccomp, c.SeccompNotifyApart)
	}
}

// inPlace makes an act in a confined process, which this one becomes: a[0] is the
// directory that may be written, a[1] a socket that is allowed or "", a[2] the act.
func inPlace(a []string) error {
	var sockets []string
	if a[1] != "" {
		sockets = a[1:2]
	}
	exe, plan, err := planIn(a[0], enforce.Options{InPlace: true}, sockets...)
	if err != nil {
		return err
	}
	c := &fork.Command{Path: exe, Args: a[2:], Dir: a[0], Env: []string{"ZSBX_TEST_ACT=" + a[2]}}
	m, err := plan.ConfineMediated(c)
	if err != nil {
		return err
	}
	if m != nil {
		err = m.StandBy(&fork.Command{Path: exe, Args: []string{serverOf(a[0])}, Env: []string{"ZSBX_TEST_ACT=serve-apart"}})
		if err != nil {
			return err
		}
	}
	return fork.Exec(c)
}

// serverOf is how the process is called that answers for a place.
func serverOf(dir string) string { return "server-of-" + dir }

// findServer gives its pid, 0 for none.
func findServer(dir string) int {
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		if b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && strings.TrimRight(string(b), "\x00") == serverOf(dir) {
			pid, _ := strconv.Atoi(e.Name())
			return pid
		}
	}
	return 0
}

// serverEnds waits until nobody answers for a place any more.
func serverEnds(t *testing.T, dir string) {
	t.Helper()
	for range 400 {
		if findServer(dir) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %d still answers for %s", findServer(dir), dir)
}

// TestInPlaceAttacks: the attacks on sockets outside fail where the command has
// replaced its supervisor, too.
func TestInPlaceAttacks(t *testing.T) {
	needApart(t)
	dgram, abstract := unix.EACCES, unix.EPERM
	if mediated() {
		dgram, abstract = unix.ESOCKTNOSUPPORT, unix.ECONNREFUSED
	}
	var attacks [][]string
	for _, act := range []string{"reach", "reach-seq", "reach-nonblock"} {
		for _, how := range []string{"plain", "zero", "relative", "full", "link", "dirlink", "cwd", "proc-root",
			"proc-cwd", "proc-dir", "proc-fd", "proc-pid", "dev-fd", "abstract"} {
			attacks = append(attacks, []string{act, how, "OUT/sock"})
		}
	}
	attacks = append(attacks, []string{"pass", "OUT/sock"}, []string{"link-socket", "OUT/sock", "IN/link"},
		[]string{"move-socket", "IN/sub/theirs", "IN/sub/own"}, []string{"move-listen", "IN/sub/theirs", "IN/sub/own"},
		[]string{"race-memory", "OUT/sock", "IN/own"}, []string{"race-link", "OUT/sock", "IN/own"})
	for _, how := range []string{"sendto", "sendmsg", "sendmmsg", "connect"} {
		attacks = append(attacks, []string{"dgram", how, "OUT/sock"}, []string{"dgram-pair", how, "OUT/sock"})
	}
	for _, a := range attacks {
		t.Run(strings.Join(a, " "), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			network, name, want := "unix", p.out+"/sock", unix.EACCES
			switch args := strings.Join(a, " "); {
			case strings.HasPrefix(args, "dgram"):
				network, want = "unixgram", dgram
			case strings.Contains(args, "abstract"):
				name, want = fmt.Sprintf("@zsbx-%d-%s", os.Getpid(), a[0]), abstract
				a[2] = name[1:]
				fallthrough
			case strings.HasPrefix(args, "reach-seq"):
				if a[0] == "reach-seq" {
					network = "unixpacket"
				}
			case strings.Contains(args, "theirs"):
				name = p.in + "/sub/theirs"
			case a[0] == "link-socket":
				want = unix.EXDEV
			case strings.HasPrefix(args, "race"):
				want = 0
			}
			d := listenOutside(t, network, name)
			args := p.fill(a)
			got := p.try(t, nil, "in-place", append([]string{p.in, ""}, args...)...)
			time.Sleep(20 * time.Millisecond)
			if inside := d.reached.Load(); got != want && (a[0] != "link-socket" || got != unix.EACCES) || inside != 0 {
				t.Errorf("got %v, want %v; %d connections", got, want, inside)
			}
			serverEnds(t, p.in)
			moved := strings.HasPrefix(a[0], "move")
			if os.Remove(p.in + "/sub/own"); !moved {
				os.RemoveAll(p.in)
				os.Mkdir(p.in, 0o755)
			}
			if got := p.try(t, nil, args[0], args[1:]...); got != 0 {
				t.Errorf("control: %v", got)
			}
			for i := 0; !moved && d.reached.Load() == 0; i++ {
				if i == 1000 {
					t.Fatal("control: nothing arrived")
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// TestInPlaceWorks: what a command may reach, it reaches.
func TestInPlaceWorks(t *testing.T) {
	needApart(t)
	p := newPlace(t)
	d := listenOutside(t, "unix", p.out+"/sock")
	for _, args := range [][]string{
		{"", "unix-own", p.in + "/a"}, {"", "undumpable", p.in + "/b"}, {"", "pair"}, {"", "children"},
		{p.out + "/sock", "reach", "plain", p.out + "/sock"},
	} {
		if got := p.try(t, nil, "in-place", append([]string{p.in}, args...)...); got != 0 {
			t.Errorf("%v: %v", args, got)
		}
		serverEnds(t, p.in)
	}
	for i := 0; d.reached.Load() == 0 && i < 1000; i++ {
		time.Sleep(time.Millisecond)
	}
	if d.reached.Load() != 1 {
		t.Errorf("%d connections to the socket that is allowed", d.reached.Load())
	}
	// A program that is not there: what stood by for it ends.
	if got := p.try(t, nil, "in-place", p.out+"/none", "", "pair"); got != unix.ENOENT {
		t.Errorf("%v", got)
	}
	serverEnds(t, p.out+"/none")
}

// children says EBADE if this process has children that it did not make, or a
// signal from one.
func children([]string) error {
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); err != unix.ECHILD {
		return unix.EBADE
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); (name == "SigPnd" || name == "ShdPnd") && strings.Trim(value, " \t\n0") != "" {
			return unix.EBADE
		}
	}
	return nil
}

// TestInPlaceServer: the command can neither end nor look into what answers it.
func TestInPlaceServer(t *testing.T) {
	needApart(t)
	needMediation(t)
	p := newPlace(t)
	if got := p.try(t, nil, "in-place", p.in, "", "attack-server", p.in, "inside"); got != 0 {
		t.Errorf("an attack worked: %v", got)
	}
	serverEnds(t, p.in)
	// The control is made by a process outside, while another command is there.
	done := make(chan unixErrno, 1)
	go func() {
		done <- p.try(t, nil, "in-place", p.in, "", "after-turn", p.in+"/own", p.out+"/none", p.in+"/mine", p.in+"/yours")
	}()
	for i := 0; i < 1000; i++ {
		if _, err := os.Stat(p.in + "/mine"); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if got := p.try(t, nil, "attack-server", p.in, "outside"); got != 0 {
		t.Errorf("control: %v", got)
	}
	os.WriteFile(p.in+"/yours", nil, 0o644)
	if got := <-done; got != unix.EACCES && got != unix.ENOENT {
		t.Errorf("after the control: %v", got)
	}
}

// attackServer tries what ends or reads the process that answers for a place. It
// says EBADE if something works inside, or fails outside.
func attackServer(a []string) error {
	pid := findServer(a[0])
	if pid == 0 {
		return unix.ESRCH
	}
	acts := processActs()
	for _, name := range []string{"ptrace", "vm-read", "mem", "environ", "root", "kill", "tgkill", "sigqueue", "pidfd"} {
		args := []string{strconv.Itoa(pid)}
		if name == "root" {
			args = append(args, "etc")
		}
		err := acts[name](args)
		if (err == nil) != (a[1] == "outside") {
			fmt.Fprintf(os.Stderr, "%s of %d: %v\n", name, pid, err)
			return unix.EBADE
		}
	}
	return nil
}
