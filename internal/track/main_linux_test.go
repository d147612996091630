package track

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// helperEnv makes the test binary play a program: the value is its name.
const helperEnv = "ZSBX_TRACK_HELPER"

// init locks the program that ends its first thread to that thread.
func init() {
	if os.Getenv(helperEnv) == "zombieleader" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	_ = unix.Umask(0o022) // a store that others can write to is refused
	if name := os.Getenv(helperEnv); name != "" {
		h := helpers()[name]
		if h == nil {
			fmt.Fprintf(os.Stderr, "no helper %q\n", name)
			os.Exit(99)
		}
		h(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// rounds returns how often tests of races repeat: ZSBX_TEST_ROUNDS, or 5.
func rounds(t testing.TB) int {
	s := os.Getenv("ZSBX_TEST_ROUNDS")
	if s == "" {
		return 5
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("ZSBX_TEST_ROUNDS: %v", err)
	}
	return n
}

// tempStore returns a store for the test.
func tempStore(t testing.TB) *Store {
	t.Helper()
	s, err := OpenStoreAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// helper returns a command that plays the named program.
func helper(t testing.TB, name string, args ...string) *fork.Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	return &fork.Command{
		Path: self, Args: append([]string{name}, args...), Dir: t.TempDir(),
		Env:   append(os.Environ(), helperEnv+"="+name, "GOMAXPROCS=2"),
		Files: []*os.File{null, null, null},
	}
}

// runShell returns a command for /bin/sh.
func runShell(t testing.TB, script string) *fork.Command {
	c := helper(t, "sh", "-c", script)
	c.Path = "/bin/sh"
	return c
}

// confine puts the command into a Landlock domain that scopes signals, as a
// policy would.
func confine(t testing.TB, c *fork.Command) {
	t.Helper()
	steps, done, err := domainSteps(domainCaps().landlock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	c.Steps = append(c.Steps, steps...)
}

// domainCaps returns what the machine offers for the tracker Domain.
func domainCaps() caps { return probe(Options{Tracker: Domain}) }

// requireDomain skips the test if the kernel lacks the tracker.
func requireDomain(t testing.TB) {
	t.Helper()
	c := domainCaps()
	testkit.NeedLandlock(t, c.landlock, domainABI, c.noDomain)
}

// deadline limits how long anything may take before a test fails.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

// kinds runs a test under each tracker that the machine has.
func kinds(t *testing.T, run func(t *testing.T, o Options)) {
	caps := probe(Options{Tracker: Cgroup})
	for _, k := range []Kind{Domain, Cgroup, Subtree} {
		t.Run(string(k), func(t *testing.T) {
			o := Options{Tracker: k, Confined: true, Scoped: true, Store: tempStore(t)}
			if k == Domain {
				requireDomain(t)
			}
			if _, err := caps.choose(Options{Tracker: k, Scoped: true}); err != nil {
				testkit.Lacks(t, testkit.Cgroup, err)
			}
			run(t, o)
		})
	}
}

// begin starts c in a new session.
func begin(t testing.TB, o Options, c *fork.Command) *Session {
	t.Helper()
	s, err := Begin(o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Scoped && domainCaps().landlock >= domainABI {
		confine(t, c)
	}
	err = s.Start(c)
	if err != nil {
		_, _ = s.Close(deadline(t))
		t.Fatal(err)
	}
	t.Cleanup(func() { // also if the test failed
		_, _ = o.Store.Reap(deadline(t), s.ID())
	})
	return s
}

// marked returns the living processes whose environment has the mark. It is an oracle that
// knows nothing of sessions.
func marked(t testing.TB, mark string) []int {
	t.Helper()
	ents, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range ents {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains(string(b), mark) {
			if p, err := proc.Look(pid); err == nil && !p.Dead() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// sleeping reports whether n processes of a session have become sleep(1). Before, there may be
// one more, and for a moment a process has no environment.
func sleeping(t testing.TB, mark string, n int) bool {
	t.Helper()
	for _, pid := range marked(t, mark) {
		if p, err := proc.Look(pid); err == nil && p.Name == "sleep" {
			n--
		}
	}
	return n == 0
}

// canary starts a process outside every session. check fails the test if it is gone.
func canary(t testing.TB) (check func()) {
	t.Helper()
	c := exec.Command("sleep", "300")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	t.Cleanup(func() { _ = c.Process.Kill(); <-ended })
	return func() {
		t.Helper()
		select {
		case <-ended:
			t.Fatal("a process outside the session was killed")
		default:
		}
	}
}
