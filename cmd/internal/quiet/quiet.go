//go:build linux && (amd64 || arm64)

package quiet

import (
	"sync/atomic"
	"unsafe"
)

// call makes a system call, and returns what the kernel returns.
//
//go:noescape
func call(nr, a, b, c, d uintptr) uintptr

// action is struct sigaction as rt_sigaction(2) takes it. All zero is SIG_DFL.
type action struct{ handler, flags, restorer, mask uintptr }

const (
	sigquit  = 3
	sigabrt  = 6
	sigkill  = 9
	sigrtmax = 64

	siginfo  = 0x4        // SA_SIGINFO
	restorer = 0x4000000  // SA_RESTORER
	onstack  = 0x8000000  // SA_ONSTACK
	restart  = 0x10000000 // SA_RESTART

	futexWake = 129 // FUTEX_WAKE_PRIVATE
)

var _ = plain()

// plain resets the signals to their default action, and pauses the monitor.
func plain() bool {
	var none action
	call(sysSigaction, sigquit, uintptr(unsafe.Pointer(&none)), 0, 8)
	call(sysSigaction, sigabrt, uintptr(unsafe.Pointer(&none)), 0, 8)
	pause()
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

// These are the addresses of a signal handler, and of the call of rt_sigreturn(2) to which it
// returns. The handler waits (futex(2)) until resumed is not 0, at most 10 ms. Then it sets
// resumed, so it waits only once. Meanwhile no other handler may run on its stack: on arm64
// Go's can't find their thread if ours interrupted vdso(7), and they would end the wait.
var handlerPC, returnPC uintptr

var resumed uint32

// pause makes the runtime's monitor wait in a signal handler. The monitor is the first thread
// that the runtime makes. If another process took the next number, it is not found and runs on.
func pause() {
	act := action{handler: handlerPC, flags: siginfo | restorer | onstack | restart, restorer: returnPC, mask: ^uintptr(0)}
	call(sysSigaction, sigrtmax, uintptr(unsafe.Pointer(&act)), 0, 8)
	pid := call(sysGetpid, 0, 0, 0, 0)
	call(sysTgkill, pid, pid+1, sigrtmax, 0)
}

// Resume ends the monitor's pause. A program that serves several blocking calls at once needs
// the monitor, which takes processors from blocked threads.
func Resume() {
	atomic.StoreUint32(&resumed, 1)
	call(sysFutex, uintptr(unsafe.Pointer(&resumed)), futexWake, 1, 0)
}
