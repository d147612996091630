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

// What handles a signal in the place of Go's own handler must not touch Go's world,
// and a goroutine that is woken for a signal costs two threads at every start: 5 % of it.
// So the handler is assembly, which calls passOn. These are its address, that of
// rt_sigreturn(2), to which it returns, and passOn's.
var (
	handlerPC, returnPC uintptr
	//lint:ignore U1000 the assembly calls it
	passOnPC = reflect.ValueOf(passOn).Pointer()
)

// The connection to the keeper, the keeper's pid (0 for none), the last signal that
// was passed on, and the highest si_code (sigaction(2)) with which SIGINT and SIGQUIT
// are. Above 0 they are the kernel's own, from the terminal, which has sent them to
// the command too, unless that has another one.
var forwardTo, keeperPid, forwarded, keyboardCode int32

// passOn sends a signal to the keeper for the command, and wakes the keeper in case
// somebody has stopped it. info is siginfo_t, which begins with si_signo, si_errno and
// si_code.
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

// kernelAction is struct sigaction as rt_sigaction(2) takes it.
type kernelAction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// Not in x/sys/unix.
const (
	saSiginfo  = 0x4
	saRestorer = 0x4000000
	saOnStack  = 0x8000000
	saRestart  = 0x10000000
	sigIgnore  = 1
)

// replaced are the caller's own handlers, while a command has its signals.
var (
	forwarding atomic.Bool
	replaced   map[syscall.Signal]kernelAction
)

// forward begins to pass signals on to the command, by way of the keeper. One
// that is ignored stays so.
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

// endForward puts the caller's handlers back. A signal that has come and that no thread
// has taken yet can be dropped, as it was for the command: to ignore it takes it away
// (sigaction(2)). The caller's handler gets it else, and without one it ends the program.
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

// Forwarded is the last signal that was passed on to a command, or 0.
func (p *Process) Forwarded() syscall.Signal {
	return syscall.Signal(atomic.LoadInt32(&forwarded))
}

// spareKeeper has signals not wake the keeper any more: its pid is about to be
// free.
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
