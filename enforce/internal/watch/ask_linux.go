package watch

import (
	"runtime"

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

// await waits until a thread stops, or says that it is gone.
func await(tid int) (ws unix.WaitStatus, stopped bool) {
	for {
		_, err := unix.Wait4(tid, &ws, unix.WALL, nil)
		if err != unix.EINTR {
			return ws, err == nil && ws.Stopped()
		}
	}
}
