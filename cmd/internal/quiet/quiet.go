//go:build linux && (amd64 || arm64)

package quiet

import "unsafe"

// call makes a system call, and returns what the kernel returns.
//
//go:noescape
func call(nr, a, b, c, d uintptr) uintptr

// action is struct sigaction as rt_sigaction(2) takes it. All zero is SIG_DFL.
type action struct{ handler, flags, restorer, mask uintptr }

const (
	sigquit = 3
	sigabrt = 6
	sigkill = 9

	schedOther = 0
	schedBatch = 3
)

var _ = plain()

// plain resets the signals to their default action, and calms the monitor.
func plain() bool {
	var none action
	call(sysSigaction, sigquit, uintptr(unsafe.Pointer(&none)), 0, 8)
	call(sysSigaction, sigabrt, uintptr(unsafe.Pointer(&none)), 0, 8)
	calm()
	return roomy(-1) == 0
}

// roomy grows the main goroutine's stack to what a run needs. The runtime would double it
// step by step, and with each step make room for other stacks of that size. That takes
// one percent of a start.
//
//go:noinline
func roomy(at int) byte {
	if at < 0 { // always: only the room is needed, not its bytes
		return 0
	}
	var room [26 << 10]byte
	room[at] = 1
	return room[at/2]
}

// calm gives the runtime's monitor a scheduling policy with which it preempts no thread
// when it wakes (sched(7), SCHED_BATCH). The monitor is the first thread that the runtime
// makes. If another process took the next number, it is not found and stays as it is.
func calm() {
	var priority int32
	pid := call(sysGetpid, 0, 0, 0, 0)
	if call(sysSchedGetscheduler, 0, 0, 0, 0) == schedOther && call(sysTgkill, pid, pid+1, 0, 0) == 0 {
		call(sysSchedSetscheduler, pid+1, schedBatch, uintptr(unsafe.Pointer(&priority)), 0)
	}
}
