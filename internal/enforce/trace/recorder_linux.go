package trace

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/broker"
)

// Recorder traces a broker's calls, which come from several goroutines.
type Recorder struct {
	world   *answer.World
	imagine bool             // world's rules for files are not enforced; record what they would refuse
	names   map[int32]string // of the system calls
	found   sync.Map         // targets, by path as written
	stored  atomic.Int32     // how often something was stored in found
	threads sync.Map         // *thread, by number

	refusals
}

// New returns the recorder for a plan whose filter hands calls over. With imagine, another plan
// confines the command's use of files, and the recorder records what this one would refuse,
// unproved. The filter and the broker are in effect either way.
func New(w *answer.World, imagine bool) *Recorder {
	return &Recorder{world: w, imagine: imagine, names: w.Filter.Names()}
}

// Answer answers a call and returns nil, unless the broker has to answer. Then it returns the
// function that the broker calls if it refuses.
func (r *Recorder) Answer(c *broker.Call) (refused func(unix.Errno)) {
	l := r.look(c)
	handsOver, errno := r.world.Filter.Decide(l.Call, c.Args())
	if l.Call == "exit_group" {
		r.ended(broker.ProcessOf(l.Pid), int(l.args[0]&0xff))
		c.Continue()
		return nil
	}
	if l.Pid == 0 || handsOver {
		return l.refused
	}
	if errno != 0 {
		l.refusedCall(unix.Errno(errno))
		c.Refuse(unix.Errno(errno))
		return nil
	}
	mayBeRefused := l.read() && l.decide()
	if mayBeRefused || l.fails() {
		l.confirm()
	} else {
		c.Continue()
	}
	return nil
}

// look prepares to look at a call.
func (r *Recorder) look(c *broker.Call) *look {
	old, _ := r.threads.LoadOrStore(c.Tid(), new(thread))
	t := old.(*thread)
	args := c.Args()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Seen++
	t.made++
	if c.Notes == nil {
		c.Notes = new(look)
	}
	l := c.Notes.(*look)
	*l = look{call: c, r: r, proc: process(c.Tid())}
	l.Refusal = Refusal{Call: r.names[c.Nr()], Pid: c.Tid(), Count: 1, thread: t, made: t.made}
	copy(l.args[:], args[:])
	return l
}

// refused records a refusal by the broker.
func (l *look) refused(errno unix.Errno) {
	if v := l.call.Verdict; v != nil {
		l.refusedHost(v, unix.ErrnoName(errno))
		l.r.add(l.Refusal, 0)
		return
	}
	switch asks := l.read(); {
	case l.Act.Op == "" && errno == unix.EPERM: // a call about another process's threads
		l.refusedCall(errno)
	case l.Call == "socket" && errno == unix.EACCES: // the session has no network after all
		l.refusedCall(errno)
	case asks && l.decide() && l.Errno == unix.ErrnoName(errno):
		l.Proved = true
		l.r.add(l.Refusal, 0)
	}
}

// refusedCall records a refusal by a rule of the filter, whoever gave the answer.
func (l *look) refusedCall(errno unix.Errno) {
	l.Act = answer.Act{Op: answer.Call, Name: l.Call, Args: l.call.Args()}
	l.refusedBy(l.r.world.RefusedCall(l.Call, unix.ErrnoName(errno)))
	l.Ordinary = l.r.world.Filter.Outside(l.Call)
	l.Proved = true
	l.r.add(l.Refusal, 0)
}

// refusedBy sets the plan's answer and the program that is refused. After the call the process
// may run another program.
func (l *look) refusedBy(got answer.Answer) {
	l.Answer = got
	l.Errno = got.Errno
	l.Process = broker.ProcessOf(l.Pid)
	comm, _ := os.ReadFile(process(l.Process) + "/comm")
	l.Program = strings.TrimSuffix(string(comm), "\n")
}

// confirm continues a call and records if the kernel refuses it. It does so before the thread
// goes on, since the command may end after a refusal. It attaches to the thread while that
// waits for its answer, so that the thread stops right when the call returns.
func (l *look) confirm() {
	const restarted = 512  // ERESTARTSYS, the lowest of the errors that restart a call (linux/errno.h)
	runtime.LockOSThread() // the thread that attached must detach
	defer runtime.UnlockOSThread()
	if !l.attach() {
		l.thread.tries.Store(0)
		l.believe()
		l.call.Continue()
		return
	}
	_ = unix.PtraceInterrupt(l.Pid)
	l.call.Continue()
	// A thread that is killed meanwhile must be reaped, or its process never ends.
	for ws, stopped := await(l.Pid); stopped; ws, stopped = await(l.Pid) {
		if errno := returned(l.Pid); errno < restarted && !l.Proved {
			l.thread.tries.Store(0)
			l.Proved = true
			if l.isRefusal(errno) {
				l.r.add(l.Refusal, 0)
			}
		}
		signal := uintptr(0)
		if event := uint32(ws) >> 16; event == 0 { // a signal is about to be delivered
			signal = uintptr(ws.StopSignal())
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(l.Pid), 0, signal, 0, 0)
		if errno == 0 {
			return
		}
	}
}

// attach attaches to the thread, and reports whether that succeeded. It can't if another process
// traces the thread, if the thread is not dumpable, or if Yama refuses. A thread that is not the
// first of its process changes its number in execve(2).
func (l *look) attach() bool {
	const most = 8 // attempts at a call that attaching restarts, which happens before Linux 5.19
	if l.r.imagine || l.call.Crowded() || l.thread.tries.Add(1) > most {
		return false
	}
	changesNumber := l.Act.Op == answer.Exec && l.Process != l.Pid
	return !changesNumber && unix.PtraceSeize(l.Pid) == nil
}

// believe records a refusal by the plan, unproved. A call on a missing file fails with ENOENT,
// unless it makes the file or a mount hides it.
func (l *look) believe() {
	a := &l.Act
	makes := a.Op == answer.Make || a.Op == answer.Bind || a.Flags&answer.Creat != 0
	there := !a.Missing || makes || l.Answer.By == answer.Mounts
	if there && l.Answer.Verdict == answer.Refused && !l.Ordinary {
		l.r.add(l.Refusal, 0)
	}
}

// await waits until an attached thread stops. It returns false if the thread is gone.
func await(tid int) (ws unix.WaitStatus, stopped bool) {
	for {
		_, err := unix.Wait4(tid, &ws, unix.WALL, nil)
		if err != unix.EINTR {
			return ws, err == nil && ws.Stopped()
		}
	}
}

// returned returns the error of a stopped thread's call, from one of its general registers
// (ptrace(2), PTRACE_GETREGSET). It knows the same machines as package seccomp.
func returned(tid int) unix.Errno {
	const general, most = 1, 4095                                 // NT_PRSTATUS, MAX_ERRNO
	at := map[string]int{"amd64": 10, "arm64": 0}[runtime.GOARCH] // rax, x0
	var regs [64]int64
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&regs)), Len: uint64(unsafe.Sizeof(regs))}
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), general,
		uintptr(unsafe.Pointer(&v)), 0, 0)
	if result := regs[at]; errno == 0 && -most <= result && result < 0 {
		return unix.Errno(-result)
	}
	return 0 // success, or the thread was killed
}

// isRefusal reports whether an error is a refusal, and finds out whether it comes from the
// plan.
func (l *look) isRefusal(errno unix.Errno) bool {
	l.Errno = unix.ErrnoName(errno)
	// A program starts without privileges, or fails with EPERM if it is capability-dumb
	// (capabilities(7)).
	if l.Answer.By == answer.NoNewPrivs {
		return errno == 0 || errno == unix.EPERM
	}
	if l.Answer.Verdict == answer.Undecided { // a file of another process
		inside := l.Act
		inside.Inside = true
		l.Answer = l.r.world.Decide(&inside)
		if l.Answer.Errno != l.Errno {
			l.Act.Op = answer.Trace
			l.Answer = answer.Answer{Verdict: answer.Refused, By: answer.Landlock, Errno: l.Errno}
		}
	}
	same := l.Answer.Errno == l.Errno
	if !slices.Contains([]unix.Errno{unix.EPERM, unix.EACCES, unix.EROFS, unix.EXDEV}, errno) {
		return errno != 0 && same && !l.Ordinary // such as EBUSY or ENOENT: a refusal only if the plan says so
	}
	l.Ordinary = l.Ordinary || errno == unix.EPERM && !same
	if !same && !l.Ordinary {
		l.Answer = answer.Answer{Verdict: answer.Undecided, Errno: l.Errno}
	}
	return true
}
