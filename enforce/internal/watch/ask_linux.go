package watch

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/broker"
)

// restarted is ERESTARTSYS, the first of the errors (linux/errno.h) after which a call
// comes again, and stands for a thread that is gone.
const restarted = unix.Errno(512)

// ask lets a call go on and gives what the kernel answered, or that it could not be
// seen. The thread is attached to while it waits for its answer, so that it stops right
// when the call returns.
func ask(c *broker.Call) (errno unix.Errno, seen bool) {
	runtime.LockOSThread() // who attaches has to detach
	defer runtime.UnlockOSThread()
	tid := c.Tid()
	if unix.PtraceSeize(tid) != nil { // traced already, not dumpable, or Yama
		c.Continue()
		return 0, false
	}
	_ = unix.PtraceInterrupt(tid)
	c.Continue()
	ws, stopped := await(tid)
	if !stopped {
		return restarted, true
	}
	errno = returned(tid)
	signal := uintptr(0)
	if uint32(ws)>>16 == 0 { // it stopped to be given a signal
		signal = uintptr(ws.StopSignal())
	}
	_, _, gone := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, signal, 0, 0)
	for gone != 0 && stopped {
		// It was killed while it was stopped. Until its tracer reaps it, its process
		// does not end.
		_, stopped = await(tid)
	}
	return errno, true
}

// returned is the error of a stopped thread's call, which is in one of its general
// registers (ptrace(2), PTRACE_GETREGSET), on the machines that package seccomp knows.
func returned(tid int) unix.Errno {
	at := map[string]int{"amd64": 10, "arm64": 0}[runtime.GOARCH] // rax, x0
	const general, most = 1, 4095                                 // NT_PRSTATUS, MAX_ERRNO
	var regs [64]int64
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&regs)), Len: uint64(unsafe.Sizeof(regs))}
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), general, uintptr(unsafe.Pointer(&v)), 0, 0)
	switch result := regs[at]; {
	case errno != 0:
		return restarted
	case -most <= result && result < 0:
		return unix.Errno(-result)
	}
	return 0
}

// await waits until a thread stops, or says that it is gone.
func await(tid int) (ws unix.WaitStatus, stopped bool) {
	for {
		_, err := unix.Wait4(tid, &ws, unix.WALL, nil)
		if err != unix.EINTR {
			return ws, err == nil && ws.Stopped()
		}
	}
}
