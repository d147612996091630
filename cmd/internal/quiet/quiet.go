//go:build linux && (amd64 || arm64)

package quiet

import "unsafe"

// call makes a system call, and gives what the kernel returns.
//
//go:noescape
func call(nr, a, b, c, d uintptr) uintptr

// action is struct sigaction as rt_sigaction(2) takes it. All zero is SIG_DFL.
type action struct{ handler, flags, restorer, mask uintptr }

const (
	sigquit = 3
	sigabrt = 6
	sigkill = 9
)

var _ = plain()

// plain gives the signals back to the system.
func plain() bool {
	giveBack(sigquit)
	giveBack(sigabrt)
	return true
}

//go:nosplit
//go:norace
func giveBack(signal uintptr) {
	var none action
	call(sysSigaction, signal, uintptr(unsafe.Pointer(&none)), 0, 8)
}
