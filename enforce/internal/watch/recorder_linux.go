package watch

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/broker"
)

// Recorder has a broker's calls watched, which come from several goroutines.
type Recorder struct {
	world   *answer.World
	imagine bool             // nothing of the world holds: what it would refuse is recorded
	names   map[int32]string // of the system calls
	found   sync.Map         // targets, by their paths as they are written
	stored  atomic.Int32     // how often something was stored there
	threads sync.Map         // *thread, by number

	refusals
}

// New makes the recorder for a plan, whose filter hands over what it sees. With imagine
// the files of another plan hold the command, and what this one would refuse is recorded,
// unproved; filter and broker are those that hold it.
func New(w *answer.World, imagine bool) *Recorder {
	return &Recorder{world: w, imagine: imagine, names: w.Filter.Names()}
}

// Watch answers a call, unless the broker has to: that tells what it refuses.
func (r *Recorder) Watch(c *broker.Call) (refused func(unix.Errno)) {
	l := r.look(c)
	handsOver, errno := r.world.Filter.Decide(l.Call, c.Args())
	switch {
	case l.Pid == 0 || handsOver:
		return l.refused
	case errno != 0:
		l.refusedCall(unix.Errno(errno))
		c.Refuse(unix.Errno(errno))
	case l.read() && l.decide():
		l.confirm()
	default:
		c.Continue()
	}
	return nil
}

// look is a call that is going to be looked at.
func (r *Recorder) look(c *broker.Call) *look {
	old, _ := r.threads.LoadOrStore(c.Tid(), new(thread))
	t, args := old.(*thread), c.Args()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Seen++
	t.made++
	if c.Notes == nil {
		c.Notes = new(look)
	}
	l := c.Notes.(*look)
	*l = look{call: c, r: r, proc: process(c.Tid()), Refusal: Refusal{Call: r.names[c.Nr()], Pid: c.Tid(), Count: 1, thread: t, made: t.made}}
	copy(l.args[:], args[:])
	return l
}

// refused is told what the broker answered.
func (l *look) refused(errno unix.Errno) {
	switch asks := l.read(); {
	case l.Act.Op == "" && errno == unix.EPERM: // of another's threads
		l.refusedCall(errno)
	case asks && l.decide() && l.Errno == unix.ErrnoName(errno):
		l.Proved = true
		l.r.add(l.Refusal, 0)
	}
}

// refusedCall records what a rule of the filter refuses, by whoever's answer.
func (l *look) refusedCall(errno unix.Errno) {
	l.Act = answer.Act{Op: answer.Call, Name: l.Call, Args: l.call.Args()}
	l.refusedBy(l.r.world.RefusedCall(l.Call, unix.ErrnoName(errno)))
	l.Proved = true
	l.r.add(l.Refusal, 0)
}

// refusedBy takes what the plan says, and which program that meets: it may be another one
// when the call is over.
func (l *look) refusedBy(got answer.Answer) {
	l.Answer, l.Errno, l.process = got, got.Errno, broker.ProcessOf(l.Pid)
	comm, _ := os.ReadFile(process(l.process) + "/comm")
	l.Program = strings.TrimSuffix(string(comm), "\n")
}

// confirm lets a call go on, and records what the kernel refuses before the thread goes
// on: the command may end by it. The thread is attached to while it waits for its answer,
// so that it stops right when the call returns. One that executes a program goes on by
// another number, if it is not the first of its process; what can't be seen is told as the
// plan has it.
func (l *look) confirm() {
	const most = 8         // looks at a call that comes again by being looked at, as before Linux 5.19 it may
	const restarted = 512  // ERESTARTSYS, the first of the errors by which it does (linux/errno.h)
	runtime.LockOSThread() // who attaches has to detach
	defer runtime.UnlockOSThread()
	wanders := l.Act.Op == answer.Exec && l.process != l.Pid
	if l.r.imagine || l.thread.tries.Add(1) > most || wanders || unix.PtraceSeize(l.Pid) != nil { // traced already, not dumpable, or Yama
		l.thread.tries.Store(0)
		a := &l.Act
		there := !a.Missing || a.Op == answer.Make || a.Op == answer.Bind || a.Flags&answer.Creat != 0 || l.Answer.By == answer.Mounts // else ENOENT
		if there && l.Answer.Verdict == answer.Refused && !l.Ordinary {
			l.r.add(l.Refusal, 0)
		}
		l.call.Continue()
		return
	}
	_ = unix.PtraceInterrupt(l.Pid)
	l.call.Continue()
	// One that is killed meanwhile has to be reaped, or its process never ends.
	for ws, stopped := await(l.Pid); stopped; ws, stopped = await(l.Pid) {
		if errno := returned(l.Pid); errno < restarted && !l.Proved {
			l.thread.tries.Store(0)
			if l.Proved = true; l.isRefusal(errno) {
				l.r.add(l.Refusal, 0)
			}
		}
		signal := uintptr(0)
		if event := uint32(ws) >> 16; event == 0 { // it stopped to be given a signal
			signal = uintptr(ws.StopSignal())
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(l.Pid), 0, signal, 0, 0); errno == 0 {
			return
		}
	}
}

// await waits until a thread stops that is attached to, or says that it is gone.
func await(tid int) (ws unix.WaitStatus, stopped bool) {
	for {
		_, err := unix.Wait4(tid, &ws, unix.WALL, nil)
		if err != unix.EINTR {
			return ws, err == nil && ws.Stopped()
		}
	}
}

// returned is the error of a stopped thread's call, which is in one of its general
// registers (ptrace(2), PTRACE_GETREGSET), on the machines that package seccomp knows.
func returned(tid int) unix.Errno {
	const general, most = 1, 4095                                 // NT_PRSTATUS, MAX_ERRNO
	at := map[string]int{"amd64": 10, "arm64": 0}[runtime.GOARCH] // rax, x0
	var regs [64]int64
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&regs)), Len: uint64(unsafe.Sizeof(regs))}
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), general, uintptr(unsafe.Pointer(&v)), 0, 0)
	if result := regs[at]; errno == 0 && -most <= result && result < 0 {
		return unix.Errno(-result)
	}
	return 0 // or it was killed
}

// isRefusal reports whether an error is one that something refused with, and finds out
// whether that was the plan.
func (l *look) isRefusal(errno unix.Errno) bool {
	l.Errno = unix.ErrnoName(errno)
	if l.Answer.By == answer.NoNewPrivs { // it starts without, but for one that can't tell: capabilities(7)
		return errno == 0 || errno == unix.EPERM
	}
	if l.Answer.Verdict == answer.Undecided { // a file of another process
		own := l.Act
		own.Inside = true
		if l.Answer = l.r.world.Decide(&own); l.Answer.Errno != l.Errno {
			l.Act.Op = answer.Trace
			l.Answer = answer.Answer{Verdict: answer.Refused, By: answer.Landlock, Errno: l.Errno}
		}
	}
	same := l.Answer.Errno == l.Errno
	if !slices.Contains([]unix.Errno{unix.EPERM, unix.EACCES, unix.EROFS, unix.EXDEV}, errno) {
		return errno != 0 && same && !l.Ordinary // EBUSY, and that nothing is there: what the plan says alone
	}
	l.Ordinary = l.Ordinary || errno == unix.EPERM && !same
	if !same && !l.Ordinary {
		l.Answer = answer.Answer{Verdict: answer.Undecided, Errno: l.Errno}
	}
	return true
}
