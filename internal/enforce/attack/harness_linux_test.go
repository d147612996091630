package attack_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// place is a directory tree for one test: files in "in" are allowed, those in "out" are not.
type place struct {
	dir, in, out string
	policy       *resolve.Resolved
}

// newPlace makes a place whose policy allows programs to run and "in" to be
// read, written and executed.
func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{dir: dir, in: dir + "/in", out: dir + "/out"}
	for _, d := range []string{p.in, p.out, p.in + "/sub"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{p.in + "/file", p.out + "/file"} {
		if err := os.WriteFile(f, []byte("secret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.policy = &resolve.Resolved{OS: "linux", Dir: p.in, Net: resolve.ResolvedNet{Mode: resolve.NetOpen}}
	for _, d := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc", self(t)} {
		p.allow(t, policy.Read|policy.Exec, d)
	}
	p.allow(t, policy.Read, "/proc")
	p.allow(t, policy.Read|policy.Write, "/dev/null")
	p.allow(t, policy.Read|policy.Write|policy.Exec, p.in)
	return p
}

// self returns the test binary.
func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func fileID(t testing.TB, path string) (host.FileID, fs.FileMode) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("lstat %s: %v", path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return host.FileID{Dev: st.Dev, Ino: st.Ino}, info.Mode().Type()
}

// allow adds a rule. It ignores missing files, and links to what is allowed anyway.
func (p *place) allow(t testing.TB, access policy.Access, path string) {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	id, mode := fileID(t, real)
	p.policy.Paths = append(p.policy.Paths, resolve.Path{Path: real, Access: access, ID: id, Mode: mode,
		Rule: policy.Rule{Path: path, Access: access, Origin: policy.Origin{Source: "test"}}})
}

// thisHost is the real file system, with the tests' own name server.
func thisHost() *host.Host {
	return &host.Host{
		OS:      "linux",
		ReadDir: files.List, ReadFile: readFile, Readlink: os.Readlink,
		Lstat: func(path string) (host.Stat, error) {
			info, err := os.Lstat(path)
			if err != nil {
				return host.Stat{}, err
			}
			st := info.Sys().(*syscall.Stat_t)
			return host.Stat{Mode: info.Mode(), ID: host.FileID{Dev: st.Dev, Ino: st.Ino}, Nlink: uint64(st.Nlink)}, nil
		},
	}
}

// plan returns the plan for the place's policy on this machine, without a mount namespace, to
// test Landlock and seccomp alone.
func (p *place) plan() *enforce.Plan {
	caps := enforce.Probe()
	caps.MountNS, caps.MountReason = false, "left out by the test"
	return enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
}

// run runs a program, confined unless plan is nil, and returns its exit status and output.
func run(t testing.TB, plan *enforce.Plan, c *fork.Command) (syscall.WaitStatus, string) {
	t.Helper()
	ws, out, err := started(t, plan, c)
	if err != nil {
		t.Fatalf("start %s: %v", c.Path, err)
	}
	return ws, out
}

// started is run for a command that may not start.
func started(t testing.TB, plan *enforce.Plan, c *fork.Command) (syscall.WaitStatus, string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c.Files = []*os.File{null, w, w}
	if plan != nil && plan.Mounts != nil && plan.Mounts.Pids {
		c.Keeper = &fork.Keeper{}
	}
	proc, err := startUnder(plan, c)
	w.Close()
	if err != nil {
		return 0, "", err
	}
	defer proc.Close()
	out, _ := io.ReadAll(r)
	return await(t, proc), string(out), nil
}

// await waits for the end of a command, and ends what it left. Otherwise its keeper would stay
// a zombie until the tests end, and thousands of zombies make all use of /proc slow.
func await(t testing.TB, proc *fork.Process) (status syscall.WaitStatus) {
	t.Helper()
	for ended := false; ; {
		switch ev, err := proc.Next(); {
		case ended && err == io.EOF:
			return status
		case err != nil:
			t.Fatalf("wait for the command: %v", err)
		case ev.Kind == fork.Exited:
			status, ended = ev.Status, true
			_ = proc.Kill()
		}
	}
}

// try lets the test binary do an act and returns the kernel's answer.
func (p *place) try(t *testing.T, plan *enforce.Plan, name string, args ...string) syscall.Errno {
	t.Helper()
	ws, out := run(t, plan, actCommand(self(t), p.in, name, args))
	switch {
	case ws.Signaled():
		return errnoSignal + syscall.Errno(ws.Signal())
	case ws.ExitStatus() >= exitNoAct:
		t.Fatalf("%s %q: exit status %d: %s", name, args, ws.ExitStatus(), out)
	}
	return syscall.Errno(ws.ExitStatus())
}

// actCommand returns a command that does an act. GORACE keeps the race detector from waiting a
// second at its end.
func actCommand(exe, dir, name string, args []string) *fork.Command {
	return &fork.Command{
		Path: exe, Args: append([]string{exe}, args...), Dir: dir,
		Env: []string{"ZSBX_TEST_ACT=" + name, "GOMAXPROCS=1", "GODEBUG=" + os.Getenv("GODEBUG"), "GORACE=atexit_sleep_ms=0"},
	}
}

// errnoSignal plus a signal's number is the answer of an act that a signal ended.
const errnoSignal = 1000

// sh runs a shell command line.
func (p *place) sh(t *testing.T, plan *enforce.Plan, script string) (int, string) {
	t.Helper()
	ws, out := run(t, plan, &fork.Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: p.in,
		Env: []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + p.in, "TMPDIR=" + p.in, "OUT=" + p.out, "LC_ALL=C.UTF-8"}})
	if ws.Signaled() {
		return 128 + int(ws.Signal()), out
	}
	return ws.ExitStatus(), strings.TrimSpace(out)
}

// needLandlock skips a test if the kernel lacks a version of Landlock.
func needLandlock(t *testing.T, version int) {
	t.Helper()
	c := enforce.Probe()
	testkit.NeedLandlock(t, c.Landlock, version, c.LandlockReason)
}

// startAct starts an act and returns how to wait for its answer.
func startAct(plan *enforce.Plan, p *place, name string, args ...string) (func(*testing.T) int, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	proc, err := startUnder(plan, &fork.Command{
		Path: exe, Args: append([]string{exe}, args...), Dir: p.dir,
		Env: []string{"ZSBX_TEST_ACT=" + name, "GOMAXPROCS=1"},
	})
	if err != nil {
		return nil, err
	}
	return func(t *testing.T) int {
		t.Helper()
		defer proc.Close()
		return await(t, proc).ExitStatus()
	}, nil
}
