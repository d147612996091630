package watch

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// Recorder is the broker's Watcher. Its calls come from several goroutines.
type Recorder struct {
	world   *answer.World
	imagine bool             // nothing of the world holds: what it would refuse is recorded
	names   map[int32]string // of the system calls
	dirs    sync.Map         // directories as they are written, and their canonical names
	threads map[int]*thread

	refusals
}

// New makes the recorder for a plan, whose filter hands over what it sees. With imagine
// the files of another plan hold the command, and what this one would refuse is recorded,
// unproved; filter and broker are those that hold it.
func New(w *answer.World, imagine bool) *Recorder {
	return &Recorder{world: w, imagine: imagine, names: w.Filter.Names(), threads: make(map[int]*thread)}
}

// Watch answers a call, unless the broker has to.
func (r *Recorder) Watch(c *broker.Call) bool {
	l := r.look(c, 1)
	handsOver, errno := r.world.Filter.Decide(c.Nr(), c.Args())
	switch {
	case c.Tid() == 0 || handsOver && (!c.Renames() || c.MeetsMount()):
		return false
	case errno != 0:
		l.refusedCall(unix.Errno(errno))
		c.Refuse(unix.Errno(errno))
	case l.read() && l.decide() && !r.imagine:
		l.confirm()
	default:
		if a := &l.Act; l.Answer.Verdict == answer.Refused && (!a.Missing || a.Op == answer.Make || a.Flags&answer.Creat != 0) { // else ENOENT
			r.add(l.Refusal)
		}
		c.Continue()
	}
	return true
}

// most is how many calls are looked at before the names of directories are looked up
// anew, which bounds the memory they take.
const most = 8192

// look is a call that is going to be looked at, and counts as so many more.
func (r *Recorder) look(c *broker.Call, more int) *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.threads[c.Tid()]
	if t == nil {
		t = &thread{}
		r.threads[c.Tid()] = t
	}
	if r.all.Seen += more; r.all.Seen%most == 0 {
		r.dirs.Clear()
	}
	t.made += more
	return &look{call: c, r: r, proc: process(c.Tid()), Refusal: Refusal{Call: r.names[c.Nr()], Pid: c.Tid(), Count: 1, thread: t, made: t.made}}
}

// Refused is told what the broker answered.
func (r *Recorder) Refused(c *broker.Call, errno unix.Errno) {
	l := r.look(c, 0)
	switch asks := l.read(); {
	case l.Act.Op == "" && errno == unix.EPERM: // of another's threads
		l.refusedCall(errno)
	case l.Act.Op == answer.Signal && r.world.Broker.Signals != seccomp.SignalsAll:
		// signal 0: the broker told the truth
	case asks && l.decide() && l.Errno == unix.ErrnoName(errno):
		l.Proved = true
		r.add(l.Refusal)
	}
}

// refusedCall records what a rule of the filter refuses, by whoever's answer.
func (l *look) refusedCall(errno unix.Errno) {
	l.Act = answer.Act{Op: answer.Call, Name: l.Call, Args: l.call.Args()}
	l.refusedBy(l.r.world.RefusedCall(l.Call, unix.ErrnoName(errno)))
	l.Proved = true
	l.r.add(l.Refusal)
}

// refusedBy takes what the plan says, and which program that meets: it may be another one
// when the call is over.
func (l *look) refusedBy(got answer.Answer) {
	l.Answer, l.Errno, l.process = got, got.Errno, broker.ProcessOf(l.Pid)
	comm, _ := os.ReadFile(process(l.process) + "/comm")
	l.Program = strings.TrimSuffix(string(comm), "\n")
}

// maxTries is how often a call is looked at that is made again whenever it is
// looked at, as it may be before Linux 5.19. Then it goes on, and what it would be
// answered is what the plan says.
const maxTries = 8

// confirm lets a call go on, and records what the kernel refuses before the thread goes
// on: the command may end by it. The thread is attached to while it waits for its answer,
// so that it stops right when the call returns. One that executes a program goes on by
// another number, if it is not the first of its process.
func (l *look) confirm() {
	runtime.LockOSThread() // who attaches has to detach
	defer runtime.UnlockOSThread()
	wanders := l.Act.Op == answer.Exec && l.process != l.Pid
	if l.thread.tries.Add(1) > maxTries || wanders || unix.PtraceSeize(l.Pid) != nil { // traced already, not dumpable, or Yama
		l.thread.tries.Store(0)
		if l.Answer.Verdict == answer.Refused && !l.Ordinary {
			l.r.add(l.Refusal)
		}
		l.call.Continue()
		return
	}
	_ = unix.PtraceInterrupt(l.Pid)
	l.call.Continue()
	ws, stopped := await(l.Pid)
	if !stopped {
		return
	}
	const restarted = 512 // ERESTARTSYS, the first of those after which a call comes again (linux/errno.h)
	if errno := returned(l.Pid); errno < restarted {
		l.thread.tries.Store(0)
		if l.Proved = true; l.isRefusal(errno) {
			l.r.add(l.Refusal)
		}
	}
	detach(l.Pid, ws)
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

// detach has a stopped thread go on, with the signal that it may have stopped for.
func detach(tid int, ws unix.WaitStatus) {
	signal := uintptr(0)
	if event := uint32(ws) >> 16; event == 0 {
		signal = uintptr(ws.StopSignal())
	}
	_, _, gone := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, signal, 0, 0)
	for stopped := gone != 0; stopped; {
		// It was killed while it was stopped. Until its tracer reaps it, its process
		// does not end.
		_, stopped = await(tid)
	}
}

// isRefusal reports whether an error is one that something refused with, and finds out
// whether that was the plan.
func (l *look) isRefusal(errno unix.Errno) bool {
	l.Errno = unix.ErrnoName(errno)
	if l.Answer.Verdict == answer.Undecided { // a file of another process
		own := l.Act
		own.Inside = true
		if l.Answer = l.r.world.Decide(&own); l.Answer.Errno != l.Errno {
			l.Act.Op = answer.Trace
			l.Answer = answer.Answer{Verdict: answer.Refused, By: answer.Landlock, Errno: l.Errno}
		}
	}
	same := l.Answer.Errno == l.Errno
	switch errno {
	case unix.EPERM:
		l.Ordinary = l.Ordinary || !same
	case unix.EACCES, unix.EROFS, unix.EXDEV:
	default: // EBUSY, and that nothing is there: what the plan says alone
		return errno != 0 && same && !l.Ordinary
	}
	if !same && !l.Ordinary {
		l.Answer = answer.Answer{Verdict: answer.Undecided, Errno: l.Errno}
	}
	return true
}
