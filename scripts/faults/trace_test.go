//go:build linux && amd64

package faults

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fault is one system call that is made to fail.
type fault struct {
	Who   depth         // which process
	Call  int           // its number: an index into calls
	Nth   int           // which of that process's calls of it, from 1
	Errno syscall.Errno //
	On    bool          // all calls from there on fail, not only one
}

func (f fault) String() string {
	on := ""
	if f.On {
		on = "+"
	}
	return fmt.Sprintf("%s %s %d%s %s", f.Who, calls[f.Call].name, f.Nth, on, unix.ErrnoName(f.Errno))
}

// depth says how many forks below zsbx a process is.
type depth int

func (d depth) String() string {
	if int(d) < len(depths) {
		return depths[d]
	}
	return "other"
}

var depths = [...]string{"zsbx", "keeper", "child"}

// tracer runs zsbx under ptrace(2), and detaches from the command once it is executed. It counts the
// calls of each process before that, and makes one fail.
type tracer struct {
	fault *fault
	seen  map[fault]int // how often each call was made: Nth and Errno are 0
	hit   bool

	mu    sync.Mutex
	tasks map[int]*task
	early map[int]bool // stopped before its parent's stop reported it
	root  int
	end   syscall.WaitStatus
	hung  bool
}

// task is one thread.
type task struct {
	who     depth
	entered bool // in a system call
	fail    bool // the call is made to fail
}

const (
	options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
		unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	ownChildren = 0x20000000 // __WNOTHREAD: not those that other threads trace
)

// run starts argv and traces it until everything that it traces has ended. When limit is over, it
// kills that.
func (t *tracer) run(argv []string, attr *os.ProcAttr, limit time.Duration) error {
	runtime.LockOSThread() // ptrace works by threads; this one is not used again
	t.seen, t.tasks, t.early = map[fault]int{}, map[int]*task{}, map[int]bool{}
	attr.Sys = &syscall.SysProcAttr{Ptrace: true, Setsid: true}
	p, err := os.StartProcess(argv[0], argv, attr)
	if err != nil {
		return err
	}
	t.root = p.Pid
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(t.root, &ws, 0, nil); err != nil {
		return fmt.Errorf("wait4 of %s: %w", argv[0], err)
	}
	if err := unix.PtraceSetOptions(t.root, options); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	t.tasks[t.root] = &task{}
	timer := time.AfterFunc(limit, t.giveUp)
	defer timer.Stop()
	t.resume(t.root, 0)
	for t.live() {
		pid, err := syscall.Wait4(-1, &ws, unix.WALL|ownChildren, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD:
			return nil // those in early were killed before their parent's stop reported them
		case err != nil:
			return fmt.Errorf("wait4: %w", err)
		default:
			t.stopped(pid, ws)
		}
	}
	return nil
}

// live reports whether anything is still traced.
func (t *tracer) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tasks) > 0
}

// giveUp kills everything.
func (t *tracer) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hung = true
	for pid := range t.tasks {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// stopped handles one stop or end of a thread (ptrace(2)).
func (t *tracer) stopped(pid int, ws syscall.WaitStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ws.Exited() || ws.Signaled() {
		if pid == t.root {
			t.end = ws
		}
		delete(t.tasks, pid)
		return
	}
	me := t.tasks[pid]
	if me == nil {
		t.early[pid] = true
		return
	}
	sig := ws.StopSignal()
	switch event := int(ws) >> 16; {
	case sig == syscall.SIGTRAP|0x80:
		t.call(pid, me)
		sig = 0
	case event == unix.PTRACE_EVENT_EXEC:
		if me.who > 0 {
			delete(t.tasks, pid)
			_ = syscall.PtraceDetach(pid)
			return
		}
		sig = 0
	case event != 0:
		t.born(pid, me.who)
		sig = 0
	case sig == syscall.SIGTRAP:
		sig = 0
	}
	t.resume(pid, sig)
}

// born handles the stop of a parent that has a new child; a thread belongs to the same process. The
// kind of the stop does not say which it is: a process that ends with another signal than SIGCHLD,
// such as a keeper, counts as a clone, too (ptrace(2)).
func (t *tracer) born(parent int, who depth) {
	n, err := syscall.PtraceGetEventMsg(parent)
	if err != nil {
		return
	}
	pid := int(n)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", parent, pid)); err != nil {
		who++
	}
	t.tasks[pid] = &task{who: who}
	if !t.early[pid] { // its first stop, by SIGSTOP, is still to come
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, unix.WALL, nil); err != nil || !ws.Stopped() {
			delete(t.tasks, pid) // killed before it began
			return
		}
	}
	delete(t.early, pid)
	if t.hung {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	t.resume(pid, 0)
}

func (t *tracer) resume(pid int, sig syscall.Signal) { _ = syscall.PtraceSyscall(pid, int(sig)) }

// call counts a call that begins, and makes it fail if it is the one.
func (t *tracer) call(pid int, me *task) {
	if me.entered {
		me.entered = false
		if me.fail {
			me.fail = false
			setResult(pid, -int64(t.fault.Errno))
		}
		return
	}
	me.entered = true
	at, known := callByNumber[callNumber(pid)]
	if !known || calls[at].name == "write" && wakes(pid) {
		return
	}
	key := fault{Who: me.who, Call: at}
	t.seen[key]++
	f := t.fault
	if f == nil || f.Who != me.who || f.Call != at || t.seen[key] < f.Nth || t.seen[key] > f.Nth && !f.On {
		return
	}
	t.hit, me.fail = true, true
	skipCall(pid)
}

// wakes reports whether a call writes to an eventfd, as Go's runtime does to wake its poller. Only a
// mistake of the program makes that fail (eventfd(2)): no disk is full, and nothing is interrupted.
func wakes(pid int) bool {
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, int32(peek(pid, offRdi))))
	return err == nil && file == "anon_inode:[eventfd]"
}

// The registers that a system call uses on this machine (syscall(2)): rax, rdi and orig_rax in
// struct user of sys/user.h.
const (
	offRax     = 10 * 8
	offRdi     = 14 * 8
	offOrigRax = 15 * 8
)

func callNumber(pid int) uintptr { return peek(pid, offOrigRax) }

// skipCall makes the kernel make no call at all.
func skipCall(pid int) { poke(pid, offOrigRax, ^uint64(0)) }

func setResult(pid int, r int64) { poke(pid, offRax, uint64(r)) }

func peek(pid int, off uintptr) (word uintptr) {
	syscall.RawSyscall6(syscall.SYS_PTRACE, syscall.PTRACE_PEEKUSR, uintptr(pid), off, uintptr(unsafe.Pointer(&word)), 0, 0)
	return word
}

func poke(pid int, off uintptr, word uint64) {
	syscall.RawSyscall6(syscall.SYS_PTRACE, syscall.PTRACE_POKEUSR, uintptr(pid), off, uintptr(word), 0, 0)
}
