package enforce

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/libsystem"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// These tests need a Mac. They are in the order in which their subjects depend on each other:
// the calls, the profile, what it enforces. With ZSBX_TEST_REQUIRE=seatbelt they fail instead
// of being skipped.

const testSession = "0f9a3c1e-5b7d-4e2a-9c11-223344556677"

// requireSeatbelt skips a test if no profile can be applied.
func requireSeatbelt(t *testing.T) {
	t.Helper()
	if c := Probe(); !c.Seatbelt {
		testkit.Lacks(t, testkit.Seatbelt, c.SeatbeltReason)
	}
}

// macPlan returns a plan for the baseline of this Mac and some more rules.
func macPlan(t *testing.T, dir string, p policy.Policy) *Plan {
	t.Helper()
	h, err := host.HostIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := resolve.Policy(policy.Merge(policy.Baseline("macos"), &p), h)
	if err != nil {
		t.Fatal(err)
	}
	plan := NewPlan(r, Probe(), &h, Options{})
	if err := plan.Err(nil, false); err != nil {
		t.Fatal(err)
	}
	return plan
}

// tempDir returns a directory in the kernel's spelling.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sh runs a script under a plan, and returns its status and output.
func sh(t *testing.T, plan *Plan, script string, args ...string) (int, string) {
	t.Helper()
	status, out, err := tryCommand(plan, append([]string{"/bin/sh", "-c", script, "sh"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return status, out
}

// shTracked runs a script that is only tracked.
func shTracked(t *testing.T, script string, args ...string) (int, string) {
	t.Helper()
	status, out, err := tryConfined(append([]string{"/bin/sh", "-c", script, "sh"}, args...), tracked)
	if err != nil {
		t.Fatal(err)
	}
	return status, out
}

// tracked puts a command under the profile of those that are only tracked.
func tracked(c *fork.Command) error {
	profile, err := fingerprint.TrackProfile(testSession, "/Users/u")
	c.Sandbox = &fork.Sandbox{Profile: profile, Session: testSession}
	return err
}

func tryCommand(plan *Plan, argv []string) (status int, out string, err error) {
	return tryConfined(argv, func(c *fork.Command) error {
		c.Dir = plan.Policy.Dir
		_, err := plan.Confine(c)
		return err
	})
}

func tryConfined(argv []string, confine func(*fork.Command) error) (status int, out string, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, "", err
	}
	defer null.Close()
	c := &fork.Command{Path: argv[0], Args: argv, Env: []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}, Files: []*os.File{null, w, w}}
	var p *fork.Process
	err = confine(c)
	if err == nil {
		p, err = fork.Start(c)
	}
	w.Close()
	if err != nil {
		return 0, "", err
	}
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		text <- string(b)
	}()
	for {
		ev, err := p.Next()
		if err != nil {
			return 0, "", err
		}
		if ev.Kind == fork.Exited {
			select {
			case out = <-text:
			case <-time.After(10 * time.Second):
				out = "(its output stays open)"
			}
			if ev.Status.Signaled() {
				return 128 + int(ev.Status.Signal()), out, nil
			}
			return ev.Status.ExitStatus(), out, nil
		}
	}
}

// 1: the helper applies a profile and checks the fingerprint on itself.
func TestMacSelfCheck(t *testing.T) {
	requireSeatbelt(t)
	status, out := sh(t, macPlan(t, tempDir(t), policy.Policy{}), "echo inside; exit 7")
	if status != 7 || out != "inside\n" {
		t.Fatalf("%d %q", status, out)
	}
}

// 2 and 3: what sandbox_check answers about processes without a profile, for any path, about
// dead ones and about root's.
func TestMacAnswersOutside(t *testing.T) {
	requireSeatbelt(t)
	sleep := exec.Command("/bin/sleep", "30")
	dead := exec.Command("/usr/bin/true")
	if err := errors.Join(sleep.Start(), dead.Run()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
	}()
	zombie := exec.Command("/usr/bin/true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	defer func() { _ = zombie.Wait() }()
	for name, pid := range map[string]int{"self": os.Getpid(), "child": sleep.Process.Pid, "dead": dead.Process.Pid, "zombie": zombie.Process.Pid, "launchd": 1} {
		n := fingerprint.Name(testSession)
		a := libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".allow")
		d := libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".deny")
		if a == libsystem.Allowed && d == libsystem.Denied {
			t.Errorf("%s (%d) answers like a member", name, pid)
		}
		t.Logf("%s: in a sandbox %d; names %d %d", name, libsystem.SandboxCheck(pid, "", libsystem.FilterNone, ""), a, d)
	}
}

// 4: the helper, over and over.
func TestMacStartsOften(t *testing.T) {
	requireSeatbelt(t)
	plan := macPlan(t, tempDir(t), policy.Policy{})
	for i := range 200 {
		if status, out, err := tryCommand(plan, []string{"/usr/bin/true"}); err != nil || status != 0 {
			t.Fatalf("start %d: %d %q %v", i, status, out, err)
		}
	}
}

// accepts lets macOS's own tool compile a profile.
func accepts(profile string) (string, bool) {
	b, err := exec.Command("/usr/bin/sandbox-exec", "-p", profile, "/usr/bin/true").CombinedOutput()
	return strings.TrimSpace(string(b)), err == nil
}

// 5: long literals. The generator does not depend on this, but readers may want to know.
func TestMacLongLiterals(t *testing.T) {
	requireSeatbelt(t)
	for _, n := range []int{100, 255, 256, 1000} {
		_, ok := accepts(`(version 1)(allow default)(deny file-read* (literal "/` + strings.Repeat("x", n-1) + `"))`)
		t.Logf("a literal of %d bytes is accepted: %v", n, ok)
	}
	q, err := fingerprint.Quote("/" + strings.Repeat("long/", 190) + "x")
	if err != nil {
		t.Fatal(err)
	}
	if out, ok := accepts(`(version 1)(allow default)(deny file-read* (literal ` + q + `))`); !ok {
		t.Errorf("a joined literal is refused: %s", out)
	}
}

// 10: this Mac knows every operation of denials and rules. Those of base.sb are in every
// profile.
func TestMacOperations(t *testing.T) {
	requireSeatbelt(t)
	for _, op := range append(seatbelt.AccessOps(), "network-bind", "network-inbound", "system-socket", "mach-lookup", "lsopen", "appleevent-send", "job-creation") {
		if out, ok := accepts("(version 1)(allow default)(allow " + op + ")"); !ok {
			t.Errorf("%s: %s", op, out)
		}
	}
	for _, rule := range []string{
		`(deny mach-lookup (xpc-service-name-prefix ""))`,
		`(deny file-clone (require-all (vnode-type DIRECTORY) (subpath "/nobody")))`,
		`(if (defined? 'fcntl-command) (deny system-fcntl (fcntl-command 64 80 110)))`,
		fingerprint.NoTyping,
		`(deny file-write-create (regex "^/nobody/[cC]([sS]|[^ -~]+)(/.*)?$"))`,
	} {
		if out, ok := accepts("(version 1)(allow default)" + rule); !ok {
			t.Errorf("%s: %s", rule, out)
		}
	}
	if out, ok := accepts("(version 1)(allow default)(if (defined? 'no-such-operation) (deny no-such-operation))"); !ok {
		t.Errorf("a guarded unknown name is refused: %s", out)
	}
}

// 9: a profile in a profile is refused with a specific error, and nothing runs.
func TestMacNested(t *testing.T) {
	requireSeatbelt(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	profile := "(version 1)(allow default)(deny file-read* (literal \"/nobody\"))"
	c := exec.Command("/usr/bin/sandbox-exec", "-p", profile, exe, "-test.run=^TestMacNestedInside$", "-test.v")
	c.Env = append(os.Environ(), "ZSBX_TEST_NESTED=1", "ZSBX_TEST_REQUIRE=")
	b, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(b, []byte("refused as it should be")) {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestMacNestedInside(t *testing.T) {
	if os.Getenv("ZSBX_TEST_NESTED") == "" {
		t.Skip("for TestMacNested")
	}
	if Probe().Seatbelt {
		t.Fatal("the sandbox around this test goes unseen")
	}
	_, err := fork.Start(&fork.Command{Path: "/usr/bin/true", Args: []string{"true"}, Sandbox: &fork.Sandbox{Profile: "(version 1)(allow default)"}})
	if err == nil || !strings.Contains(err.Error(), "in a sandbox already") {
		t.Fatal(err)
	}
	t.Log("refused as it should be")
}

// TestMacErrors: a bad profile, a missing program and one that may not be executed cause
// different errors.
func TestMacErrors(t *testing.T) {
	requireSeatbelt(t)
	dir := tempDir(t)
	tool := filepath.Join(dir, "tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	plan := macPlan(t, dir, policy.Policy{})
	for path, want := range map[string]error{filepath.Join(dir, "missing"): syscall.ENOENT, tool: syscall.EPERM} {
		var se *fork.StepError
		if _, _, err := tryCommand(plan, []string{path}); !errors.As(err, &se) || se.Stage != "exec" {
			t.Errorf("%s: %v, want %v", path, err, want)
		} else if se.Errno != want && !(path != tool && se.Errno == syscall.EPERM) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	_, err := fork.Start(&fork.Command{Path: "/usr/bin/true", Args: []string{"true"}, Sandbox: &fork.Sandbox{Profile: "(version 1)(no-such-form)"}})
	if err == nil || !strings.Contains(err.Error(), "macOS refused the profile") {
		t.Errorf("%v", err)
	}
}
