//go:build linux && !amd64 && !arm64

package fork

import "golang.org/x/sys/unix"

// rawVfork is a plain fork on machines without the assembly.
//
//go:nosplit
//go:norace
func rawVfork(flags uintptr) (r int) { return call(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0) }

const vforkFlags = 0x4000 | 17 // CLONE_VFORK | SIGCHLD

// rawKeeper is not to be had on machines without the assembly.
func rawKeeper(*cloneArgs, *image) (r int) { return -int(unix.ENOSYS) }
