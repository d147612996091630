//go:build linux && !amd64 && !arm64

package fork

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// rawVfork is a plain fork on machines without the assembly.
//
//go:nosplit
//go:norace
func rawVfork(flags uintptr) (r int) { return call(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0) }

const vforkFlags = 0x4000 | 17 // CLONE_VFORK | SIGCHLD

// rawKeeper is not to be had on machines without the assembly.
func rawKeeper(*cloneArgs, *image) (r int) { return -int(unix.ENOSYS) }

// call is a system call: the result, or the negative errno as the kernel gives
// it. Raw.
//
//go:nosplit
//go:norace
func call(nr, a1, a2, a3, a4, a5, a6 uintptr) (r int) {
	n, _, errno := syscall.RawSyscall6(nr, a1, a2, a3, a4, a5, a6)
	if errno != 0 {
		return -int(errno)
	}
	return int(n)
}
