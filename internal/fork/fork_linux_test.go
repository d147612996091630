package fork

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// shell starts script in sh, with stdout into a file. The returned function returns the file's
// content.
func shell(t *testing.T, k *Keeper, script string, steps ...Step) (*Process, func() string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := &Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(),
		Files: []*os.File{os.Stdin, out, os.Stderr}, Keeper: k, Steps: steps,
	}
	var p *Process
	if k == nil {
		p = own(t, c)
	} else {
		p, err = Start(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, func() string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// own starts a command as on macOS: as this process's own child, without a keeper.
func own(t *testing.T, c *Command) *Process {
	t.Helper()
	proc, err := os.StartProcess(c.Path, c.Args, &os.ProcAttr{Env: c.Env, Files: c.Files})
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Pid: proc.Pid}
	p.startClock(c)
	return p
}

// finish reads events to the end.
func finish(t *testing.T, p *Process) (ws syscall.WaitStatus, killed int) {
	t.Helper()
	for {
		ev, err := p.Next()
		if err == io.EOF {
			return ws, killed
		}
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Kind {
		case Exited:
			ws = ev.Status
		case Emptied:
			killed = ev.Killed
		}
	}
}

func TestExitStatus(t *testing.T) {
	for _, k := range []*Keeper{nil, {}} {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": -9, "kill -15 $$": -15} {
			p, _ := shell(t, k, script)
			ws, _ := finish(t, p)
			got := ws.ExitStatus()
			if ws.Signaled() {
				got = -int(ws.Signal())
			}
			if got != want {
				t.Errorf("keeper %v: %q ended with %d, want %d", k != nil, script, got, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, k := range []*Keeper{nil, {}} {
		_, err := Start(&Command{Path: "/does/not/exist", Args: []string{"x"}, Keeper: k})
		var se *StepError
		if !errors.As(err, &se) || se.Stage != "exec" || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("missing file: %v", err)
		}
		_, err = Start(&Command{Path: "/bin/true", Args: []string{"x"}, Dir: "/does/not", Keeper: k})
		if !errors.As(err, &se) || !strings.Contains(se.Name, "/does/not") || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("missing directory: %v", err)
		}
		bad := Step{Name: "bad", Nr: unix.SYS_PRCTL, Args: [6]uintptr{9999}}
		_, err = Start(&Command{Path: "/bin/true", Args: []string{"x"}, Steps: []Step{{Name: "getpid", Nr: unix.SYS_GETPID}, bad}, Keeper: k})
		if !errors.As(err, &se) || se.Stage != "command" || se.Name != "bad" || !errors.Is(err, syscall.EINVAL) {
			t.Errorf("failing step: %v", err)
		}
		bad.MayFail = true
		if p, err := Start(&Command{Path: "/bin/true", Args: []string{"x"}, Steps: []Step{bad}, Keeper: k}); err != nil {
			t.Errorf("a step that may fail: %v", err)
		} else {
			finish(t, p)
		}
	}
	var se *StepError
	_, err := Start(&Command{Path: "/bin/true", Args: []string{"x"}, Keeper: &Keeper{Steps: []Step{{Name: "bad", Nr: unix.SYS_PRCTL, Args: [6]uintptr{9999}}}}})
	if !errors.As(err, &se) || se.Stage != "keeper" {
		t.Errorf("failing keeper step: %v", err)
	}
}

func TestInheritedDescriptors(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	script := "ls /proc/self/fd | wc -l"
	c := exec.Command("sh", "-c", script)
	control, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	p, out := shell(t, &Keeper{}, script)
	finish(t, p)
	// 0, 1, 2 and the one by which ls reads the directory.
	if got := strings.TrimSpace(out()); got != "4" {
		t.Errorf("the command has %s descriptors, want 4 (%s without)", got, strings.TrimSpace(string(control)))
	}
}

func TestManyStarts(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			exec.Command("/bin/true").Run()
		}
	}()
	for i := range 200 {
		p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Keeper: &Keeper{}})
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		if ws, _ := finish(t, p); ws != 0 {
			t.Fatalf("start %d: status %v", i, ws)
		}
		p.Close()
	}
	<-done
}

func BenchmarkStart(b *testing.B) {
	b.Run("keeper", func(b *testing.B) {
		for b.Loop() {
			p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}})
			if err != nil {
				b.Fatal(err)
			}
			for {
				if _, err := p.Next(); err != nil {
					break
				}
			}
			p.Close()
		}
	})
	b.Run("os-exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestEarlySignals: all signals that come before the command is started reach it, including
// those that the keyboard sends to the keeper.
func TestEarlySignals(t *testing.T) {
	for name, c := range map[string]struct {
		early func(p *Process) error
		want  syscall.Signal // 0 if the command ends by itself
	}{
		"none":     {func(*Process) error { return nil }, 0},
		"two":      {func(p *Process) error { return errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT)) }, syscall.SIGTERM},
		"keyboard": {func(p *Process) error { return syscall.Kill(p.KeeperPid, syscall.SIGINT) }, syscall.SIGINT},
	} {
		seconds := "0.5"
		if c.want != 0 {
			seconds = "1000"
		}
		p, err := Start(&Command{Path: "/bin/sleep", Args: []string{"sleep", seconds}, Keeper: &Keeper{}, Commit: []func(*Process) error{c.early}})
		if err != nil {
			t.Fatal(err)
		}
		if ws, _ := finish(t, p); c.want == 0 && ws != 0 || c.want != 0 && (!ws.Signaled() || ws.Signal() != c.want) {
			t.Errorf("%s: the command ended with %v, want signal %v", name, ws, c.want)
		}
		p.Close()
	}
}
