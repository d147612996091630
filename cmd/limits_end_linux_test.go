package cmd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestStoppedFromOutside: somebody stops zsbx, or its keeper.
func TestStoppedFromOutside(t *testing.T) {
	zsbx := asZsbx(t)
	for _, who := range []string{"zsbx", "keeper", "keeper, then SIGTERM"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			dir := place(t)
			flags := []string{"run", "--rw", ".", "--timeout", "1", "--kill-after", "1", "--", "sh", "beat.sh"}
			if strings.HasSuffix(who, "SIGTERM") {
				flags = []string{"run", "--rw", ".", "--", "sh", "beat.sh"}
			}
			p := exec.Command(zsbx, flags...)
			p.Dir = dir
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			started(t, dir)
			pid, want := p.Process.Pid, 124
			if who != "zsbx" {
				pid = keeperOf(t, pid)
			}
			syscall.Kill(pid, syscall.SIGSTOP)
			if strings.HasSuffix(who, "SIGTERM") {
				p.Process.Signal(syscall.SIGTERM)
				want = 143
			}
			if st := ended(p, limitTime+soon+3*time.Second); st != want {
				t.Errorf("status %d, want %d", st, want)
			}
			if beats(dir) {
				t.Error("what the command started outlived the limit")
			}
		})
	}
}

// keeperOf finds the keeper: the child of zsbx.
func keeperOf(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, f := range strings.Fields(string(b)) {
		n, _ := strconv.Atoi(f)
		return n
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range tasks {
		if b, _ := os.ReadFile(name); len(b) > 0 {
			n, _ := strconv.Atoi(strings.Fields(string(b))[0])
			return n
		}
	}
	t.Fatalf("no keeper below %d: %v", pid, err)
	return 0
}

// TestKeeperKilled: how the command ended is lost, and 125 would say that it did not
// run.
func TestKeeperKilled(t *testing.T) {
	zsbx, dir := asZsbx(t), place(t)
	p := exec.Command(zsbx, "run", "--rw", ".", "--", "sh", "beat.sh")
	p.Dir = dir
	var said bytes.Buffer
	p.Stderr = &said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	started(t, dir)
	syscall.Kill(keeperOf(t, p.Process.Pid), syscall.SIGKILL)
	if st := ended(p, 10*time.Second); st != exitLost || !strings.Contains(said.String(), "zsbx: error: how the command ended is not known") {
		t.Errorf("status %d, %q", st, &said)
	}
	if beats(dir) {
		t.Error("the command lives")
	}
}

// TestTerminalCloses: the terminal goes away, with the command in any state.
func TestTerminalCloses(t *testing.T) {
	zsbx := asZsbx(t)
	for _, flags := range [][]string{{}, {"-t"}, {"--timeout", "60"}, {"-t", "--timeout", "60"}} {
		for _, command := range []string{"sh beat.sh", "sh beat.sh & yes", "sh beat.sh & kill -STOP $$"} {
			t.Run(strings.Join(flags, " ")+" "+command, func(t *testing.T) {
				t.Parallel()
				dir := place(t)
				p := exec.Command(zsbx, append(append([]string{"run", "--rw", "."}, flags...), "--", "sh", "-c", command)...)
				p.Dir = dir
				master, err := pty.Start(p)
				if err != nil {
					t.Fatal(err)
				}
				started(t, dir)
				master.Close()
				if st := ended(p, soon); st <= 0 {
					t.Errorf("status %d", st)
				}
				if beats(dir) {
					t.Error("the command lives")
				}
			})
		}
	}
}

// TestEarlySignals: one that comes while zsbx starts ends it as it ends any program,
// without a word of Go's.
func TestEarlySignals(t *testing.T) {
	zsbx := asZsbx(t)
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT} {
		early := 0
		for range 40 {
			p := exec.Command(zsbx, "run", "--", "sleep", "60")
			p.Dir = t.TempDir()
			var said bytes.Buffer
			p.Stderr = &said
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if isStarting(p.Process.Pid) {
				early++
			}
			time.Sleep(rand.N(3 * time.Millisecond))
			p.Process.Signal(sig)
			st := ended(p, 10*time.Second)
			if st != exitSignal+int(sig) || said.Len() > 0 {
				t.Fatalf("%v: status %d, %q", sig, st, &said)
			}
		}
		if early == 0 {
			t.Fatalf("%v: zsbx was never seen without a handler of Go's for SIGQUIT", sig)
		}
	}
}

// TestKeeperKilledEarly: somebody outside kills the keeper at the moment when the
// command begins. What began ends with zsbx.
func TestKeeperKilledEarly(t *testing.T) {
	zsbx := asZsbx(t)
	for i := range 30 {
		mark := fmt.Sprintf("7%d%04d", os.Getpid(), i) // seconds: the command is known by them
		p := exec.Command(zsbx, "run", "--", "sleep", mark)
		p.Dir = t.TempDir()
		var said bytes.Buffer
		p.Stderr = &said
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		keeper := 0
		for end := time.Now().Add(10 * time.Second); firstChild(keeper) == 0; {
			if keeper = firstChild(p.Process.Pid); time.Now().After(end) {
				t.Fatalf("no command was seen below a keeper: %s", &said)
			}
		}
		syscall.Kill(keeper, syscall.SIGKILL)
		if st := ended(p, 20*time.Second); st != exitLost && st != exitFailed {
			t.Errorf("status %d", st)
		}
		for end := time.Now().Add(5 * time.Second); isAlive(mark); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the command lives: %s", &said)
			}
		}
	}
}

// firstChild is the pid of a child of the process, whichever thread made it, or 0.
func firstChild(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		first, _, _ := strings.Cut(string(b), " ")
		if n, _ := strconv.Atoi(first); n != 0 {
			return n
		}
	}
	return 0
}

// isAlive reports whether a process has the word in its command line.
func isAlive(word string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		if b, _ := os.ReadFile(f); bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

// TestBeforeMain: what keeps Go's runtime from starting is one line, and status 125.
func TestBeforeMain(t *testing.T) {
	zsbx := asZsbx(t)
	limits := []string{"-v 100000", "-v 300000", "-v 500000"}
	for _, limit := range limits {
		p := exec.Command("bash", "-c", "ulimit "+limit+"; exec \"$0\" run -- true", zsbx)
		p.Dir = t.TempDir()
		said, _ := p.CombinedOutput()
		if st := p.ProcessState.ExitCode(); st != exitFailed || !bytes.HasPrefix(said, []byte("zsbx: error: ")) || bytes.Count(said, []byte("\n")) > 2 {
			t.Errorf("%s: status %d, %q", limit, st, said)
		}
	}
}

// isStarting waits until Go has its handlers in place and SIGQUIT has none
// (proc_pid_status(5), SigCgt), but not for long: that is over when the command runs.
func isStarting(pid int) bool {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(b), "SigCgt:\t")
		hex, _, _ := strings.Cut(rest, "\n")
		caught, _ := strconv.ParseUint(hex, 16, 64)
		const quit, term = 1 << (syscall.SIGQUIT - 1), 1 << (syscall.SIGTERM - 1)
		if caught&(quit|term) == term {
			return true
		}
	}
	return false
}
