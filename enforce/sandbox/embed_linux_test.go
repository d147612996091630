package sandbox_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/zsbx/zsbx/internal/testkit"
)

// example builds a program below testdata. The test's working directory must be that of this
// package.
func example(t *testing.T, name string) (program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a program")
	}
	program = filepath.Join(t.TempDir(), name)
	out, err := exec.Command("go", "build", "-o", program, "./testdata/"+name).CombinedOutput()
	if err != nil && os.Getuid() != 0 {
		t.Skipf("go build: %v: %s", err, out) // an ordinary user may have no module cache; as root the test runs
	}
	if err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return program
}

// outside returns the name of a file in the home directory, where a command may not write. It must
// be called before place.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("HOME"), "zsbx-outside") // /tmp is the command's own
	if err != nil {
		t.Skipf("the home directory can't be written to: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "file")
}

// runs runs a program, and returns its exit status and what it printed, also on stderr.
func runs(args ...string) (status int, out string) {
	cmd := exec.Command(args[0], args[1:]...)
	var said bytes.Buffer
	cmd.Stdout = &said
	cmd.Stderr = &said
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), said.String()
}

// TestEmbed runs the program of docs/embed.md. It confines the command, which could do these acts
// without it. It passes on the exit status, and nothing that the command left running is there at
// the end.
func TestEmbed(t *testing.T) {
	page, err := os.ReadFile("../../docs/embed.md")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("testdata/embed/main.go")
	if err != nil || !strings.Contains(string(page), "```go\n"+string(shown)+"```\n") {
		t.Errorf("docs/embed.md shows another program: %v", err)
	}
	embed := example(t, "embed")
	file := outside(t)
	place(t)
	write := "echo x >" + file
	if st, out := runs("sh", "-c", write); st != 0 {
		t.Fatalf("control: status %d, %q", st, out)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if st, out := runs(embed, "sh", "-c", write); st == 0 {
		t.Errorf("a file outside was written: %q", out)
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("a file outside is there")
	}
	if st, out := runs(embed, "sh", "-c", "echo x >inside && cat inside; exit 7"); st != 7 || !strings.HasPrefix(out, "x\n") {
		t.Errorf("status %d, %q", st, out)
	}
	if st, out := runs(embed, "sh", "-c", "kill -TERM $$"); st != 128+int(syscall.SIGTERM) {
		t.Errorf("ended by a signal: status %d, %q", st, out)
	}
	st, out := runs(embed, "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $! >pid")
	if st != 0 || !isGone(pidIn(t, "pid")) {
		t.Errorf("left running: status %d, %q", st, out)
	}
	noSessions(t)
}

// pidIn waits until a file has a process id.
func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	if !testkit.Within(testkit.Patience, func() bool {
		b, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 0 && bytes.HasSuffix(b, []byte("\n"))
	}) {
		t.Fatal("the command does not begin")
	}
	return pid
}

// TestReport: the program names what was refused, and a limit that was reached.
func TestReport(t *testing.T) {
	report := example(t, "report")
	file := outside(t)
	place(t)
	write := "echo x >" + file
	if st, out := runs("sh", "-c", write); st != 0 {
		t.Fatalf("control: status %d, %q", st, out)
	}
	st, out := runs(report, "sh", "-c", "echo x >inside; "+write)
	if st == 0 || !strings.Contains(out, "1 thing was refused") || !strings.Contains(out, file) {
		t.Errorf("status %d, %q", st, out)
	}
	if st, out := runs(report, "sh", "-c", "echo x >inside"); st != 0 || strings.Contains(out, "was refused") {
		t.Errorf("nothing was refused: status %d, %q", st, out)
	}
	if st, out := runs(report, "sleep", "0.2"); st != 0 || strings.Contains(out, "it reached") {
		t.Errorf("control: status %d, %q", st, out)
	}
	if st, out := runs(report, "-timeout", "100ms", "sleep", "20"); st == 0 || !strings.Contains(out, "it reached its timeout") {
		t.Errorf("status %d, %q", st, out)
	}
	if st, out := runs(report, "head", "-c", "20M", "/dev/zero"); st == 0 || !strings.Contains(out, "it reached its max-output") {
		t.Errorf("status %d, %d bytes", st, len(out))
	}
	noSessions(t)
}

// TestReportNetwork: the command has no network.
func TestReportNetwork(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is needed: it can connect")
	}
	report := example(t, "report")
	place(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connect := "exec 3<>/dev/tcp/127.0.0.1/" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if st, out := runs("bash", "-c", connect); st != 0 {
		t.Fatalf("control: status %d, %q", st, out)
	}
	if st, out := runs(report, "bash", "-c", connect); st == 0 || !strings.Contains(out, "there is no network") {
		t.Errorf("status %d, %q", st, out)
	}
}

// TestTerminal: the program's pseudo-terminal is the command's controlling terminal, what is typed
// arrives, and so does a new size.
func TestTerminal(t *testing.T) {
	terminal := example(t, "terminal")
	place(t)
	plain := exec.Command("sh", "-c", "stty size </dev/tty")
	plain.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, err := plain.CombinedOutput(); err == nil {
		t.Errorf("control: without a terminal there is one: %s", out)
	}
	script := `trap 'stty size </dev/tty; exit 5' WINCH
		stty size </dev/tty
		read line; echo "<$line>"
		while :; do sleep 0.05; done`
	window, err := pty.StartWithSize(exec.Command(terminal, "sh", "-c", script), &pty.Winsize{Rows: 33, Cols: 44})
	if err != nil {
		t.Fatal(err)
	}
	defer window.Close()
	out := &lines{}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(out, window)
		close(ended)
	}()
	sees := func(text string) {
		t.Helper()
		if !testkit.Within(testkit.Patience, func() bool { return strings.Contains(out.String(), text) }) {
			t.Fatalf("no %q in %q", text, out.String())
		}
	}
	sees("33 44")
	if _, err := window.WriteString("word\r"); err != nil {
		t.Fatal(err)
	}
	sees("<word>")
	if err := pty.Setsize(window, &pty.Winsize{Rows: 10, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	sees("10 20")
	<-ended
	noSessions(t)
	if st, _ := runs(terminal, "sh", "-c", "exit 5"); st != 5 {
		t.Errorf("status %d", st)
	}
}

// TestQueue: what a queue that was killed left behind is gone after its next run, also if the
// keeper was killed with it. Without a session it stays.
func TestQueue(t *testing.T) {
	queue := example(t, "queue")
	place(t)
	job := "sleep 1000 & echo $! >pid; wait"
	crash := func(withKeeper bool, args ...string) (left int) {
		t.Helper()
		_ = os.Remove("pid")
		cmd := exec.Command(args[0], args[1:]...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		left = pidIn(t, "pid")
		if withKeeper {
			_ = cmd.Process.Signal(syscall.SIGSTOP) // else it ends the job when the keeper dies
			if err := syscall.Kill(parent(t, parent(t, left)), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return left
	}
	left := crash(false, "sh", "-c", job)
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Errorf("control: nothing is left: %v", err)
	}
	for _, withKeeper := range []bool{false, true} {
		left := crash(withKeeper, queue, job)
		if err := syscall.Kill(left, 0); withKeeper && err != nil {
			t.Errorf("nothing is left: %v", err)
		}
		st, out := runs(queue, "echo second; exit 3")
		if st != 0 || !strings.Contains(out, "queue-1: left by a crash") || !strings.HasSuffix(out, "second\nqueue-1: status 3\n") {
			t.Errorf("status %d, %q", st, out)
		}
		if !withKeeper && !strings.Contains(out, "now gone: true\n") {
			t.Errorf("%q", out)
		}
		if err := syscall.Kill(left, 0); !errors.Is(err, syscall.ESRCH) && !isGone(left) {
			t.Error("a process is left")
		}
		noSessions(t)
	}
}

// parent returns the parent of a process.
func parent(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}
