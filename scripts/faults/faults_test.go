//go:build linux && amd64

package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/cmd"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestMain makes the test binary also zsbx, and the command that zsbx runs.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "zsbx" {
		os.Exit(cmd.Main(os.Args[1:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		os.Exit(probe(os.Args[2:]))
	}
	if len(os.Args) == 2 && os.Args[1] == "threads" {
		for range 8 {
			go func() { runtime.LockOSThread() }()
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestTracerOfThreads traces a program that ends while its threads begin.
func TestTracerOfThreads(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		done := make(chan error)
		tracer := &tracer{}
		go func() { done <- tracer.run([]string{self, "threads"}, &os.ProcAttr{}, testkit.Patience) }()
		if err := <-done; err != nil || tracer.hung || tracer.end != 0 {
			t.Fatal(err, tracer.hung, tracer.end)
		}
	}
}

// TestShort is the short part of what make faults does: some of the calls, signals and resources.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts zsbx some hundred times")
	}
	h := newHarness(t)
	h.each, h.rounds = 20, 27
	for _, part := range []func() error{h.calls, h.signals} {
		if err := part(); err != nil {
			t.Fatal(err)
		}
	}
	h.check(t)
}

// TestShortageIsNoGap makes zsbx's questions to the kernel, and the steps by which it makes
// namespaces, fail because of a shortage. No command runs with anything open, and no gap is given
// as the reason.
func TestShortageIsNoGap(t *testing.T) {
	h := newHarness(t)
	h.each = 60
	h.some(t, map[int]string{0: "^(zsbx (seccomp|landlock_create_ruleset|pidfd_getfd 1|unshare|capget|socketpair|newfstatat|openat) |keeper (unshare|open_tree|openat|openat2|mount|move_mount|mount_setattr) ).*" +
		"(EMFILE|ENFILE|ENOMEM|EAGAIN|EINTR|ENOSPC)$"})
}

// TestNobodyWaitsForEver makes the keeper's messages, and the command's calls to zsbx, fail for
// good.
func TestNobodyWaitsForEver(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for some seconds")
	}
	h := newHarness(t)
	h.some(t, map[int]string{0: "^(keeper (sendto|dup3) 1\\+? (ENOMEM|EMFILE)|zsbx (ioctl|ppoll|recvmsg) 1\\+ ENOMEM)$"})
}

// TestKeeperBlind makes all reads of keepers fail. They can read neither their messages, so no
// command begins, nor, without a domain, what is to be killed.
func TestKeeperBlind(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for some seconds")
	}
	h := newHarness(t)
	h.some(t, map[int]string{
		0: "^keeper recvfrom 1\\+ ",
		3: "^keeper (openat|read) 1\\+ (ENOMEM|EMFILE)$", // by subtree
	})
}

// TestRuntime gives Go's runtime no thread, memory or poller, and makes the first reads of the
// keeper's messages and of a terminal's output fail. With cgo the first mappings are the loader's.
func TestRuntime(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts zsbx some hundred times")
	}
	h := newHarness(t)
	h.some(t, map[int]string{
		0: "^zsbx ((clone|epoll_create1|eventfd2|epoll_ctl) [0-9]+\\+? |mmap [0-9]{2}\\+? |read [0-9]+ (EIO|ENOMEM)$)",
		2: "^zsbx read [0-9]+ ENOMEM$", // with a terminal
	})
}

// some makes the calls fail that match a regular expression, by the number of the scenario. It fails
// the test if a case went wrong.
func (h *harness) some(t *testing.T, only map[int]string) {
	t.Helper()
	for scenario, calls := range only {
		h.only = calls
		if err := h.callsOf(scenarios()[scenario]); err != nil {
			t.Fatal(err)
		}
	}
	h.check(t)
}

// check fails the test if a case went wrong.
func (h *harness) check(t *testing.T) {
	t.Helper()
	var text bytes.Buffer
	h.table.print(&text)
	t.Log(text.String())
	if n := h.table.bad(); n > 0 {
		t.Errorf("%d cases went wrong", n)
	}
}

// newHarness makes sure that without zsbx the probe escapes.
func newHarness(t *testing.T) *harness {
	t.Helper()
	zsbx := filepath.Join(t.TempDir(), "zsbx")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(zsbx, b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A limit that nothing reaches makes zsbx get its threads before the command begins, on every
	// machine. Without any limit it gets some when a command has run for 10 ms, and on a busy machine
	// that fails here, as docs/security.md says.
	limit(t, unix.RLIMIT_DATA, 1<<46)
	h := &harness{zsbx: zsbx, self: self, limit: testkit.Patience, workers: 4, seed: 1, table: &table{}}
	if err := h.control(); err != nil {
		t.Fatal(err)
	}
	return h
}

func exited(n int) syscall.WaitStatus { return syscall.WaitStatus(n << 8) }

// TestJudge tells the outcomes of cases apart.
func TestJudge(t *testing.T) {
	const warning = "zsbx: warning: gaps: metadata, ipc (--allow-gap hardening)\n"
	const failed = "zsbx: error: no\n"
	all := func(open string) string {
		return "BEGIN\n" + open + strings.Repeat("line x\n", fillLines) + "END\n"
	}
	for _, test := range []struct {
		name string
		r    result
		want class
	}{
		{"all held", result{out: all(""), ran: true, status: exited(42)}, confined},
		{"refused", result{err: failed, status: exited(125)}, refusedRun},
		{"refused without a word", result{status: exited(125)}, unsaid},
		{"open and said", result{out: all("open\tmetadata\tchmod\n"), err: warning, ran: true, status: exited(42)}, gapSaid},
		{"open", result{out: all("open\tmetadata\tchmod\n"), ran: true, status: exited(42)}, unconfined},
		{"open, another said", result{out: all("open\tfiles\tread\n"), err: warning, ran: true, status: exited(42)}, unconfined},
		{"open in what was cut off", result{out: "BEGIN\nopen\tfiles\tread\n", err: failed, ran: true, status: exited(125)}, unconfined},
		{"a shortage as a gap", result{out: all(""), ran: true, status: exited(42), gaps: []string{"metadata"}}, falseGap},
		{"output cut off", result{out: "BEGIN\nline x\n", ran: true, status: exited(42)}, lost},
		{"a line is missing", result{out: strings.Replace(all(""), "line x\n", "", 1), ran: true, status: exited(42)}, lost},
		{"status of its own", result{out: all(""), ran: true, status: exited(0)}, lost},
		{"ran, and 125", result{out: all(""), err: failed, ran: true, status: exited(125)}, lost},
		{"ran, and said to be lost", result{out: all(""), err: "zsbx: error: the exit status was lost\n", ran: true, status: exited(125)}, saidLost},
		{"killed, and nothing can be written", result{ran: true, status: exited(137), mute: true}, unsaid},
		{"killed without a word", result{status: exited(137)}, lost},
		{"nothing can be written, and 0", result{status: exited(0), mute: true}, lost},
		{"did not run, and 0", result{status: exited(0)}, lost},
		{"hangs", result{ran: true, hung: true}, hang},
		{"leaves a process", result{out: all(""), ran: true, status: exited(42), left: []int{7}}, left},
		{"leaves a record", result{out: all(""), ran: true, status: exited(42), reap: "no"}, left},
		{"killed", result{ran: true, status: syscall.WaitStatus(syscall.SIGKILL), signal: true}, ended},
		{"Go's runtime", result{err: "fatal error: newosproc\n\ngoroutine 1:\n", status: exited(2)}, noRuntime},
		{"Go's runtime, later", result{err: "runtime: failed to create new OS thread\nfatal error: newosproc\n\ngoroutine 1:\n", ran: true, status: exited(2)}, traceback},
		{"a panic", result{err: "panic: no\n\ngoroutine 1:\n", status: exited(2)}, traceback},
		{"Go's poller", result{err: "fatal error: runtime: netpollinit failed\n\ngoroutine 1:\n", status: exited(2)}, noRuntime},
		{"Go's poller, later", result{err: "fatal error: runtime: netpollinit failed\n\ngoroutine 1:\n", ran: true, status: exited(2)}, traceback},
		{"SIGQUIT at first", result{err: "SIGQUIT: quit\n\ngoroutine 0:\n", status: exited(2), signal: true}, noRuntime},
		{"SIGQUIT after a warning", result{err: "zsbx: warning: no\nSIGQUIT: quit\n\ngoroutine 0:\n", status: exited(2), signal: true}, noRuntime},
		{"SIGQUIT later", result{err: "SIGQUIT: quit\n\ngoroutine 0:\n", ran: true, status: exited(2), signal: true}, traceback},
	} {
		if got, why := judge(test.r); got != test.want {
			t.Errorf("%s: %v (%s), want %v", test.name, got, why, test.want)
		}
	}
}

// limit lowers a limit of this process, and of what it starts, until the end of the test.
func limit(t *testing.T, resource int, most uint64) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(resource, &before); err != nil {
		t.Fatal(err)
	}
	if before.Cur <= most {
		return
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(resource, &before); err != nil {
			t.Error(err)
		}
	})
}
