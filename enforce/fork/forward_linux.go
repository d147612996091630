package fork

import (
	"errors"
	"math"
	"reflect"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanForward says whether Command.Forward works here.
const CanForward = true

// A handler that replaces Go's own must not use Go's runtime. Waking a goroutine for each
// signal would need two threads at every start, which is 5 % of it. So the handler is assembly,
// which calls passOn. These are the addresses of the handler, of the call of rt_sigreturn(2) to
// which it returns, and of passOn.
var (
	handlerPC, returnPC uintptr
	//lint:ignore U1000 the assembly calls it
	passOnPC = reflect.ValueOf(passOn).Pointer()
)

// These are the connection to the keeper, the keeper's pid (0 for none), the last signal that
// was passed on, and the highest si_code (sigaction(2)) with which SIGINT and SIGQUIT are
// passed on. A code above 0 means that the kernel sent the signal, for the terminal. The
// terminal also sent it to the command, unless that has another terminal.
var forwardTo, keeperPid, forwarded, keyboardCode int32

// passOn sends a signal to the keeper for the command, and wakes the keeper in case it was
// stopped. info is siginfo_t, which begins with si_signo, si_errno and si_code.
//
//go:nosplit
//go:norace
func passOn(sig uintptr, info *[3]int32) {
	if (sig == uintptr(unix.SIGINT) || sig == uintptr(unix.SIGQUIT)) && info[2] > keyboardCode {
		return
	}
	forwarded = int32(sig)
	m := message{msgSignal, uint32(sig)}
	call(unix.SYS_SENDTO, uintptr(forwardTo), uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	if keeperPid != 0 {
		call(unix.SYS_KILL, uintptr(keeperPid), uintptr(unix.SIGCONT), 0, 0, 0, 0)
	}
}

// kernelAction is the kernel's struct sigaction, for rt_sigaction(2).
type kernelAction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// These are missing in x/sys/unix.
const (
	saSiginfo  = 0x4
	saRestorer = 0x4000000
	saOnStack  = 0x8000000
	saRestart  = 0x10000000
	sigIgnore  = 1
)

// replaced has the caller's own handlers while signals are passed on.
var (
	forwarding atomic.Bool
	replaced   map[syscall.Signal]kernelAction
)

// forward begins to pass signals on to the command through the keeper. Ignored signals stay
// ignored.
func (p *Process) forward(signals []syscall.Signal, ownTerminal bool) error {
	if len(signals) == 0 {
		return nil
	}
	if !forwarding.CompareAndSwap(false, true) {
		return errors.New("this process passes its signals on to another command already")
	}
	atomic.StoreInt32(&forwardTo, int32(p.conn))
	atomic.StoreInt32(&keeperPid, int32(p.KeeperPid))
	atomic.StoreInt32(&forwarded, 0)
	atomic.StoreInt32(&keyboardCode, 0)
	if ownTerminal {
		atomic.StoreInt32(&keyboardCode, math.MaxInt32)
	}
	p.forwarding, replaced = true, make(map[syscall.Signal]kernelAction, len(signals))
	ours := kernelAction{handler: handlerPC, flags: saSiginfo | saRestorer | saOnStack | saRestart, restorer: returnPC}
	for _, s := range signals {
		var old kernelAction
		if sigaction(s, nil, &old) == nil && old.handler != sigIgnore && sigaction(s, &ours, nil) == nil {
			replaced[s] = old
		}
	}
	return nil
}

// endForward restores the caller's handlers. With drop it discards signals that are still
// pending, since they were meant for the command: ignoring a signal discards it (sigaction(2)).
// Otherwise the caller's handler gets them or, without one, they end the program.
func (p *Process) endForward(drop bool) {
	if !p.forwarding {
		return
	}
	ignore := kernelAction{handler: sigIgnore}
	for s, old := range replaced {
		if drop {
			_ = sigaction(s, &ignore, nil)
		}
		_ = sigaction(s, &old, nil)
	}
	atomic.StoreInt32(&forwardTo, -1)
	p.spareKeeper()
	p.forwarding = false
	forwarding.Store(false)
}

// Forwarded returns the last signal that was passed on to a command, or 0.
func (p *Process) Forwarded() syscall.Signal {
	return syscall.Signal(atomic.LoadInt32(&forwarded))
}

// spareKeeper stops signals from waking the keeper, since its pid is about to be free.
func (p *Process) spareKeeper() {
	if p.forwarding {
		atomic.StoreInt32(&keeperPid, 0)
	}
}

func sigaction(s syscall.Signal, act, old *kernelAction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(act)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
