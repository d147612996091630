package cmd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestStoppedFromOutside: another process stops zsbx, or its keeper.
func TestStoppedFromOutside(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for _, who := range []string{"zsbx", "keeper", "keeper, then SIGTERM"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			inTime(t, !strings.HasSuffix(who, "SIGTERM"), func(limit int) bool {
				dir, h := place(t)
				flags, start := limited([]string{"run", "--rw", ".", "--timeout", "LIMIT", "--kill-after", "1", "--", "sh", "beat.sh"}, limit)
				if strings.HasSuffix(who, "SIGTERM") {
					flags = []string{"run", "--rw", ".", "--", "sh", "beat.sh"}
				}
				p := openCommand(zsbx, flags...)
				p.Dir = dir
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				starts := h.startsWithin(start)
				pid, want := p.Process.Pid, 124
				if who != "zsbx" {
					pid = firstChild(pid)
				}
				if !starts || pid == 0 {
					ended(p, 0)
					return false
				}
				syscall.Kill(pid, syscall.SIGSTOP)
				if strings.HasSuffix(who, "SIGTERM") {
					p.Process.Signal(syscall.SIGTERM)
					want = 143
				}
				if st := ended(p, soon); st != want {
					t.Errorf("status %d, want %d", st, want)
				}
				if !h.stopsWithin(0) {
					t.Error("what the command started outlived the limit")
				}
				return true
			})
		})
	}
}

// keeperOf finds the keeper: the child of zsbx.
func keeperOf(t *testing.T, pid int) int {
	t.Helper()
	keeper := firstChild(pid)
	if keeper == 0 {
		t.Fatalf("no keeper below %d", pid)
	}
	return keeper
}

// childrenOf lists the children of a process, whichever of its threads made them
// (proc_pid_task(5)).
func childrenOf(pid int) []string {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var children []string
	for _, name := range tasks {
		b, _ := os.ReadFile(name)
		children = append(children, strings.Fields(string(b))...)
	}
	return children
}

// TestKeeperKilled: it is not known how the command ended. Status 125 would mean that it did not
// run.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	dir, h := place(t)
	p := openCommand(zsbx, "run", "--rw", ".", "--", "sh", "beat.sh")
	p.Dir = dir
	var said bytes.Buffer
	p.Stderr = &said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	h.started(t)
	syscall.Kill(keeperOf(t, p.Process.Pid), syscall.SIGKILL)
	if st := ended(p, testkit.Patience); st != exitLost || !strings.Contains(said.String(), "zsbx: error: how the command ended is not known") {
		t.Errorf("status %d, %q", st, &said)
	}
	if !h.stopsWithin(soon) { // without a keeper that collects it, what was killed may still be closing its files
		t.Error("the command lives")
	}
}

// TestTerminalCloses: the terminal goes away, with the command in any state.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for _, flags := range [][]string{{}, {"-t"}, {"--timeout", "600"}, {"-t", "--timeout", "600"}} {
		for _, command := range []string{"sh beat.sh", "sh beat.sh & yes", "sh beat.sh & kill -STOP $$"} {
			t.Run(strings.Join(flags, " ")+" "+command, func(t *testing.T) {
				t.Parallel()
				dir, h := place(t)
				p := openCommand(zsbx, append(append([]string{"run", "--rw", "."}, flags...), "--", "sh", "-c", command)...)
				p.Dir = dir
				master, err := pty.Start(p)
				if err != nil {
					t.Fatal(err)
				}
				h.started(t)
				master.Close()
				if st := ended(p, soon); st <= 0 {
					t.Errorf("status %d", st)
				}
				if !h.stopsWithin(0) {
					t.Error("the command lives")
				}
			})
		}
	}
}

// TestEarlySignals: a signal that comes while zsbx starts ends it like any other program, without
// a message of Go's.
func TestEarlySignals(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		for range 40 {
			p := openCommand(zsbx, "run", "--", "sleep", "60")
			p.Dir = t.TempDir()
			var said bytes.Buffer
			p.Stderr = &said
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(6 * time.Millisecond)) // no wait: any moment will do
			p.Process.Signal(sig)
			st := ended(p, testkit.Patience)
			if st != exitSignal+int(sig) || bytes.Contains(said.Bytes(), []byte("goroutine")) {
				t.Fatalf("%v: status %d, %q", sig, st, &said)
			}
		}
	}
}

// TestKeeperKilledEarly: a process outside kills the keeper at the moment when the command begins.
// What began ends with zsbx.
func TestKeeperKilledEarly(t *testing.T) {
	zsbx := asZsbx(t)
	for i := range 30 {
		mark := fmt.Sprintf("7%d%04d", os.Getpid(), i) // seconds to sleep, by which the command is found
		p := openCommand(zsbx, "run", "--", "sleep", mark)
		p.Dir = t.TempDir()
		var said bytes.Buffer
		p.Stderr = &said
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		status := make(chan int, 1)
		go func() { status <- ended(p, testkit.Patience) }()
		for running := true; running; { // without a pause, so as to be early
			// If the keeper ends while systemd puts the command into a scope, another tracker is
			// tried, with another keeper.
			if keeper := firstChild(p.Process.Pid); keeper != 0 && firstChild(keeper) != 0 {
				syscall.Kill(keeper, syscall.SIGKILL)
			}
			select {
			case st := <-status:
				running = false
				if st != exitLost && st != exitFailed {
					t.Errorf("status %d: %s", st, &said)
				}
			default:
			}
		}
		testkit.Eventually(t, "the command ends", func() bool { return !isAlive(mark) })
	}
}

// TestKilledEarly: zsbx is killed just before it is asked about the command's first call,
// execve(2). Nothing waits for the answer forever.
func TestKilledEarly(t *testing.T) {
	zsbx := asZsbx(t)
	for i := range 30 {
		mark := fmt.Sprintf("8%d%04d", os.Getpid(), i)
		p := openCommand(zsbx, "why", "--", "sleep", mark)
		p.Dir = t.TempDir()
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan int, 1)
		go func() { over <- ended(p, testkit.Patience) }()
		for running := true; running; {
			if keeper := firstChild(p.Process.Pid); keeper != 0 && firstChild(keeper) != 0 {
				p.Process.Kill()
			}
			select {
			case <-over:
				running = false
			default:
			}
		}
		testkit.Eventually(t, "the command ends", func() bool { return !isAlive(mark) })
	}
}

// TestPollerIsThere: zsbx has what it needs of epoll(7) before the command can use up the user's
// share.
func TestPollerIsThere(t *testing.T) {
	p := exec.Command(asZsbx(t), "run", "--", "sleep", "60")
	p.Dir = t.TempDir()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer ended(p, testkit.Patience)
	defer p.Process.Signal(syscall.SIGTERM)
	testkit.Eventually(t, "the command runs", func() bool {
		keeper := firstChild(p.Process.Pid)
		return keeper != 0 && firstChild(keeper) != 0
	})
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Process.Pid))
	if !slices.ContainsFunc(all, func(fd string) bool {
		to, _ := os.Readlink(fd)
		return to == "anon_inode:[eventpoll]"
	}) {
		t.Error("zsbx has no poller")
	}
}

// firstChild returns the pid of a child of the process, or 0.
func firstChild(pid int) int {
	for _, f := range childrenOf(pid) {
		n, _ := strconv.Atoi(f)
		return n
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

// TestBeforeMain: if Go's runtime can't start, the command is not run, and zsbx does not end as if
// it had been.
func TestBeforeMain(t *testing.T) {
	zsbx := asZsbx(t)
	for _, limit := range []string{"-v 100000", "-v 300000", "-v 500000"} {
		p := exec.Command("bash", "-c", "ulimit "+limit+"; exec \"$0\" run -- echo ran", zsbx)
		p.Dir = t.TempDir()
		said, _ := p.Output()
		if st := p.ProcessState.ExitCode(); st == 0 || len(said) > 0 {
			t.Errorf("%s: status %d, %q", limit, st, said)
		}
	}
}
