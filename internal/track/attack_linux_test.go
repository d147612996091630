package track

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// TestAttacks lets a command try to escape, and ends its session in three ways. In every case
// nothing is left, nothing outside is touched, and there is a proof. The oracle is a pipe that
// all attackers keep open.
func TestAttacks(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, o Options) {
		t.Parallel()
		check := canary(t)
		for _, name := range slices.Sorted(maps.Keys(attacks())) {
			t.Run(name, func(t *testing.T) {
				for range rounds(t) {
					for _, end := range []string{"close", "reap", "kill"} {
						attack(t, o, name, end)
					}
				}
			})
		}
		check()
	})
}

// attack plays one round.
func attack(t *testing.T, o Options, name, end string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o.Keep = end == "reap"
	c := helper(t, name)
	c.Files = []*os.File{c.Files[0], w, c.Files[0]}
	s := begin(t, o, c)
	w.Close()
	if b := make([]byte, 6); readFull(t, r, b) != "ready\n" {
		t.Fatalf("the attacker said %q", b)
	}
	if end == "kill" {
		_ = s.Kill()
	}
	if _, err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	rep, err := s.Close(deadline(t))
	if err == nil && rep.Kept {
		rep, err = o.Store.Reap(deadline(t), s.ID())
	}
	if err != nil || !rep.Done() {
		t.Fatalf("%s: %+v, %v", end, rep, err)
	}
	_ = r.SetReadDeadline(time.Now().Add(testkit.Patience))
	if n, err := r.Read(make([]byte, 64)); !errors.Is(err, io.EOF) {
		t.Fatalf("%s: something of the session still has the pipe open: %d, %v", end, n, err)
	}
}

func readFull(t *testing.T, r *os.File, b []byte) string {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatalf("the attacker did not get ready: %v", err)
	}
	return string(b)
}

// TestSiege: from inside its domain a command can signal neither the keeper nor, by a process
// group or a signal to all, anything else outside. The control is a command without a domain:
// the kernel allows it nearly all of this, and its keeper dies.
func TestSiege(t *testing.T) {
	requireDomain(t)
	siege := func(o Options) (*Session, []string) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c := helper(t, "siege")
		c.Files = []*os.File{c.Files[0], w, c.Files[0]}
		s := begin(t, o, c)
		w.Close()
		_ = r.SetReadDeadline(time.Now().Add(testkit.Patience))
		var got []string
		for sc := bufio.NewScanner(r); sc.Scan() && sc.Text() != "done"; {
			got = append(got, sc.Text())
		}
		return s, got
	}
	s, got := siege(Options{Store: tempStore(t), Tracker: Domain, Confined: true, Scoped: true})
	if len(got) > 0 {
		t.Errorf("in the domain: %v", got)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
	// Once its keeper is dead, the command may be ended before it says so.
	if !testkit.Within(testkit.Patience, func() bool {
		s, got = siege(Options{Store: tempStore(t), Tracker: Subtree})
		if r, err := s.Close(deadline(t)); err != nil || r.Left() {
			t.Errorf("%+v, %v", r, err)
		}
		return len(got) > 0
	}) {
		t.Error("the control shows nothing: without a domain all of it is refused as well")
	}
}

// TestMover: a member that may write to cgroupfs leaves the session's group, and leaves a
// frozen process in a new group below it. The keeper finds the first, killing the group ends
// the second, and all groups are removed.
func TestMover(t *testing.T) {
	caps := probe(Options{Tracker: Cgroup})
	if caps.group == "" {
		testkit.Lacks(t, testkit.Cgroup, caps.noGroup)
	}
	for range rounds(t) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Store: tempStore(t), Tracker: Cgroup}
		s, err := Begin(o)
		if err != nil {
			t.Fatal(err)
		}
		group := filepath.Join(caps.group, cgroup.Name(s.ID()))
		c := helper(t, "mover", group, caps.group)
		c.Files = []*os.File{c.Files[0], w, c.Files[0]}
		if err := s.Start(c); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if b := make([]byte, 6); readFull(t, r, b) != "ready\n" {
			t.Fatalf("%q", b)
		}
		rep, err := s.Close(deadline(t))
		if err != nil || !rep.Done() {
			t.Fatalf("%+v, %v", rep, err)
		}
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatal("something is left")
		}
		r.Close()
		if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the group is left: %v", err)
		}
	}
}

// TestAttackersSurviveWithout is the control: without a session the attackers outlive the
// process that started them.
func TestAttackersSurviveWithout(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(attacks())) {
		if strings.HasPrefix(name, "hopper") {
			continue // TestHoppersSurviveWithout
		}
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			self, _ := os.Executable()
			c := exec.Command(self)
			mark := "ZSBX_TEST_CONTROL=" + strconv.Itoa(os.Getpid()) + name
			c.Env = append(os.Environ(), helperEnv+"="+name, "GOMAXPROCS=2", mark) // "zombie" loses a thread
			c.Stdout = w
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			began, _ := proc.Identify(c.Process.Pid)
			readFull(t, r, make([]byte, 6))
			escapes := slices.Contains([]string{
				"doublefork", "triplefork", "many", "nodump", "subreaper", "cloneparent", "namespaces", "renamed", "shells"}, name)
			if escapes {
				eventually(t, "one has left the group", func() bool {
					tab, err := proc.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					for pid, p := range tab.Procs {
						// A user can only see the name of "nodump"; other tests of this package
						// may run.
						dumpless := name == "nodump" && p.Name == tab.Procs[os.Getpid()].Name && !p.Dead() && p.Start >= began.Start
						if p.Group != c.Process.Pid && (dumpless || controls(t, pid, r, mark)) {
							return true
						}
					}
					return false
				})
			}
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			_ = c.Wait()
			defer cleanControl(t, r, mark)
			_ = r.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, err = r.Read(make([]byte, 64))
			if escaped := !errors.Is(err, io.EOF); !escaped && escapes {
				t.Errorf("killing its process group was enough: the attack shows nothing")
			}
		})
	}
}

// TestHoppersSurviveWithout is the control for attackers that only a domain or a namespace can
// end. It runs in a PID namespace.
func TestHoppersSurviveWithout(t *testing.T) {
	out, err := inNamespace(t, "hopcontrol")
	if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.ExitCode() == 77 {
		testkit.Lacks(t, testkit.UserNS, out)
	}
	if err != nil {
		t.Errorf("killing what a scan finds was enough: the attack shows nothing: %v\n%s", err, out)
	}
}

// controls reports whether a process belongs to a control: it has the pipe open for writing, or
// has the mark.
func controls(t *testing.T, pid int, r *os.File, mark string) bool {
	t.Helper()
	ours, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if pid == os.Getpid() {
		return false
	}
	link, _ := os.Readlink(procfs.Path(pid, "fd/1"))
	env, _ := os.ReadFile(procfs.Path(pid, "environ"))
	return link == "pipe:["+strconv.FormatUint(ours.Sys().(*syscall.Stat_t).Ino, 10)+"]" || strings.Contains(string(env), mark)
}

// cleanControl kills what a control left, with SIGSTOP first.
func cleanControl(t *testing.T, r *os.File, mark string) {
	t.Helper()
	for clean := 0; clean < 20; clean++ {
		tab, err := proc.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for pid := range tab.Procs {
			if controls(t, pid, r, mark) {
				_ = unix.Kill(pid, unix.SIGSTOP)
				_ = unix.Kill(pid, unix.SIGKILL)
				clean = 0
			}
		}
		if clean == 0 {
			continue
		}
	}
}
