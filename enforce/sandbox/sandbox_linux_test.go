package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/testkit/internet"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

func TestMain(m *testing.M) {
	internet.Inside()
	sandbox.Init()
	if script := os.Getenv(askingVariable); script != "" {
		asking(script)
	}
	os.Exit(m.Run())
}

// place makes a home directory and a working directory, and returns a policy that makes the
// latter writable.
func place(t *testing.T) *policy.Policy {
	t.Helper()
	caps := enforce.Probe()
	testkit.NeedLandlock(t, caps.Landlock, 1, caps.LandlockReason)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", testkit.SystemPath(os.Getenv("PATH"))) // before HOME changes
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	t.Chdir(dir)
	rule := policy.Rule{Path: ".", Access: policy.Read | policy.Write | policy.Exec}
	return policy.Merge(policy.Baseline("linux"), &policy.Policy{FS: policy.FS{Rules: []policy.Rule{rule}}})
}

// noSessions fails if a session is left in the store.
func noSessions(t *testing.T) {
	t.Helper()
	st, err := track.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if all, err := st.List(); err != nil || len(all) > 0 {
		t.Errorf("sessions are left: %+v, %v", all, err)
	}
}

// isGone reports whether a process ends. Process 1 may take minutes to collect it.
func isGone(pid int) bool {
	return testkit.Within(testkit.Patience, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

func shell(script string) sandbox.Options {
	return sandbox.Options{Args: []string{"sh", "-c", script}}
}

// TestTimeLimit: a command that ignores SIGTERM is killed, although KillAfter is not set.
func TestTimeLimit(t *testing.T) {
	p := place(t)
	p.Limits.Timeout.Value = int64(200 * time.Millisecond)
	began := time.Now()
	r, err := sandbox.Run(context.Background(), p, shell("trap '' TERM; sleep 60; sleep 60"))
	over, ok := errors.AsType[*sandbox.LimitError](err)
	if !ok || over.Limit != "timeout" || over.Time != 200*time.Millisecond {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > sandbox.DefaultKillAfter+30*time.Second || r.ExitCode() == 0 {
		t.Errorf("status %d after %v", r.ExitCode(), took)
	}
	noSessions(t)
}

// TestTerminalSize: the command finds the size that was asked for, and the new one after Resize.
func TestTerminalSize(t *testing.T) {
	p := place(t)
	for _, c := range []struct {
		size sandbox.Size
		want string
	}{
		{sandbox.Size{}, "24 80"},
		{sandbox.Size{Rows: 50, Columns: 132}, "50 132"},
	} {
		var out bytes.Buffer
		o := shell("stty size")
		o.TTY, o.Size, o.Stdout = true, c.size, &out
		if _, err := sandbox.Run(context.Background(), p, o); err != nil || strings.TrimSpace(out.String()) != c.want {
			t.Errorf("%v: %q, %v", c.size, out.String(), err)
		}
	}
	out := &lines{}
	o := shell("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done")
	o.TTY, o.Stdout = true, out
	c, err := sandbox.Start(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Wait()
		ended <- err
	}()
	if !testkit.Within(testkit.Patience, func() bool { return strings.Contains(out.String(), "ready") }) {
		t.Fatal("it does not begin")
	}
	if err := c.Resize(sandbox.Size{Rows: 10, Columns: 20}); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil || !strings.Contains(out.String(), "10 20") {
		t.Errorf("%q, %v", out.String(), err)
	}
	if c.Resize(sandbox.Size{Rows: 1, Columns: 1}) == nil {
		t.Error("a terminal was resized after its end")
	}
	c, err = sandbox.Start(context.Background(), p, shell("true"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Resize(sandbox.Size{Rows: 1, Columns: 1}) == nil {
		t.Error("a command without a terminal was resized")
	}
	if _, err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// lines is a writer that another goroutine may read.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// TestControlling: a pseudo-terminal of the caller's becomes the command's controlling terminal,
// which /dev/tty leads to. Without Controlling there is none.
func TestControlling(t *testing.T) {
	p := place(t)
	run := func(controlling bool) string {
		master, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		if err := pty.Setsize(master, &pty.Winsize{Rows: 33, Cols: 44}); err != nil {
			t.Fatal(err)
		}
		o := shell("stty size </dev/tty; echo over")
		o.Stdin, o.Stdout, o.Stderr, o.Controlling = slave, slave, slave, controlling
		_, err = sandbox.Run(context.Background(), p, o)
		slave.Close()
		if err != nil {
			t.Error(err)
		}
		out, _ := io.ReadAll(master) // EIO at its end
		return string(out)
	}
	if out := run(true); !strings.Contains(out, "33 44") || !strings.Contains(out, "over") {
		t.Errorf("%q", out)
	}
	if out := run(false); strings.Contains(out, "33 44") {
		t.Errorf("control: %q", out)
	}
	o := shell("true")
	o.Controlling, o.Stdin = true, strings.NewReader("")
	if _, err := sandbox.Run(context.Background(), p, o); err == nil {
		t.Error("a reader became a controlling terminal")
	}
}

// TestDenials: what was refused comes as data and as text.
func TestDenials(t *testing.T) {
	here, err := os.MkdirTemp(os.Getenv("HOME"), "zsbx-denials") // /tmp is the command's own
	if err != nil {
		t.Skipf("the home directory can't be written to: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(here) })
	p := place(t)
	outside := filepath.Join(here, "file")
	o := shell("true >'" + filepath.Join(here, "a\x1b[31mb") + "'; echo x >'" + outside + "'")
	o.Explain = true
	r, err := sandbox.Run(context.Background(), p, o)
	if err != nil || r.Denials == nil || len(r.Denials.List) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	i := slices.IndexFunc(r.Denials.List, func(d sandbox.Denial) bool { return d.Path == outside })
	if i < 0 {
		t.Fatalf("%+v", r.Denials.List)
	}
	d := r.Denials.List[i]
	if !d.Cause || d.Operation != "create" || d.Errno == "" || d.Flags == "" || d.Rules == nil {
		t.Errorf("%+v", d)
	}
	if text := r.Denials.Text(); !strings.Contains(text, "2 things were refused") || !strings.Contains(text, outside) || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	if b, err := json.Marshal(r.Denials); err != nil || !bytes.Contains(b, []byte(`"operation":"create"`)) {
		t.Errorf("%s, %v", b, err)
	}
	// Following the rules allows it.
	o = shell("echo x >'" + outside + "'")
	if r, err := sandbox.Run(context.Background(), policy.Merge(p, d.Rules), o); err != nil || r.Failed {
		t.Errorf("with the rules: %+v, %v", r, err)
	}
}

// TestGaps: the command runs in Dir, and each gap says what it is about.
func TestGaps(t *testing.T) {
	p := place(t)
	dir := t.TempDir()
	o := sandbox.Options{Args: []string{"touch", "ran"}, Dir: dir}
	o.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	if r, err := sandbox.Run(context.Background(), p, o); err != nil || r.ExitCode() != 0 {
		t.Fatalf("control: %+v, %v", r, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "ran")); err != nil {
		t.Fatal(err)
	}
	o.Args = nil // no command is needed
	gaps, err := sandbox.Gaps(p, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gaps {
		if g.Name == "" || g.Promise == "" || g.Why == "" {
			t.Errorf("%+v", g)
		}
	}
}

// TestUnknownKey: Put returns an error.
func TestUnknownKey(t *testing.T) {
	var p policy.Policy
	err := p.Put("fs.readwrite", policy.Named{Value: "."})
	if e, ok := errors.AsType[*policy.Error](err); !ok || e.Code != policy.CodeUnknownKey {
		t.Errorf("%v", err)
	}
}

// TestRepository: the hooks of the repository that Dir is in are protected, however deep it lies in
// a writable tree.
func TestRepository(t *testing.T) {
	_ = place(t)
	deep := filepath.Join("a", "b", "c", "d")
	if err := os.MkdirAll(filepath.Join(deep, ".git", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"HEAD", "config"} {
		if err := os.WriteFile(filepath.Join(deep, ".git", file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(deep, ".git", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	p := policy.Merge(policy.Baseline("linux"), &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: tree, Access: policy.Read | policy.Write | policy.Exec}}}})
	o := shell("echo x >.git/hooks/post-commit")
	o.Dir = deep
	if r, err := sandbox.Run(context.Background(), p, o); err != nil || !r.Failed {
		t.Errorf("a hook was written: %+v, %v", r, err)
	}
	o.Args[2] = "echo x >file"
	if r, err := sandbox.Run(context.Background(), p, o); err != nil || r.Failed {
		t.Errorf("control: %+v, %v", r, err)
	}
}

// TestNotStarted: a command that was not started does not look like one that succeeded.
func TestNotStarted(t *testing.T) {
	p := place(t)
	r, err := sandbox.Run(context.Background(), p, sandbox.Options{Args: []string{"no-such-command"}})
	if err == nil || r.ExitCode() != 125 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNoTempDir: the command has a temporary directory only if none is declined.
func TestNoTempDir(t *testing.T) {
	p := place(t)
	t.Setenv("TMPDIR", "")
	for _, none := range []bool{false, true} {
		var out bytes.Buffer
		o := shell(`[ -n "$TMPDIR" ] && echo made >"$TMPDIR/file" && cat "$TMPDIR/file"`)
		o.NoTempDir = none
		o.Stdout = &out
		_, err := sandbox.Run(context.Background(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.String() == "made\n"; got == none {
			t.Errorf("NoTempDir %v: %q", none, out.String())
		}
	}
	noSessions(t)
}
