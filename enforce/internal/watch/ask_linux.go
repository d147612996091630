package watch

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/broker"
)

// outcome says what became of a question to the kernel.
type outcome int

const (
	again    outcome = iota // the call comes again, or its thread is gone
	proved                  // the error is the kernel's
	unproved                // it could not be seen
)

// ask lets a call go on and gives what the kernel answered. The thread is attached to
// while it waits for its answer, so that it stops right when the call returns.
func ask(c *broker.Call) (unix.Errno, outcome) {
	runtime.LockOSThread() // who attaches has to detach
	defer runtime.UnlockOSThread()
	tid := c.Tid()
	ptrace := func(request int, data uintptr) unix.Errno {
		_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0)
		return errno
	}
	if ptrace(unix.PTRACE_SEIZE, 0) != 0 { // traced already, not dumpable, or Yama
		c.Continue()
		return 0, unproved
	}
	ptrace(unix.PTRACE_INTERRUPT, 0)
	c.Continue()
	ws, stopped := await(tid)
	if !stopped {
		return 0, again
	}
	result, err := returned(tid)
	signal := uintptr(0)
	if uint32(ws)>>16 == 0 { // it stopped to be given a signal
		signal = uintptr(ws.StopSignal())
	}
	if ptrace(unix.PTRACE_DETACH, signal) == unix.ESRCH {
		// It was killed while it was stopped. Until its tracer reaps it, its
		// process does not end.
		for stopped = true; stopped; {
			_, stopped = await(tid)
		}
	}
	const restart = 512 // ERESTARTSYS and the like (linux/errno.h): it comes again
	switch {
	case err != nil, result <= -restart && result > -4096:
		return 0, again
	case result < 0 && result > -restart:
		return unix.Errno(-result), proved
	}
	return 0, proved
}

// returned is what a stopped thread's call returned: one of its general registers
// (ptrace(2), PTRACE_GETREGSET). It knows the machines that package seccomp knows.
func returned(tid int) (int64, error) {
	at, known := map[string]int{"amd64": 10, "arm64": 0}[runtime.GOARCH] // rax, x0
	if !known {
		return 0, unix.ENOSYS
	}
	const general = 1 // NT_PRSTATUS
	var regs [64]int64
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&regs)), Len: uint64(unsafe.Sizeof(regs))}
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), general, uintptr(unsafe.Pointer(&v)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return regs[at], nil
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
