package track

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raw makes a system call without telling Go's scheduler.
//
//go:nosplit
//go:norace
func raw(nr, a, b, c uintptr) int {
	r, _, errno := syscall.RawSyscall(nr, a, b, c)
	if errno != 0 {
		return -int(errno)
	}
	return int(r)
}

// rawFork forks. The child has one thread, so nothing in it may call Go's scheduler: each
// function that it calls has to be nosplit. Go tells a goroutine that has run for 10 ms to give
// way by a mark that other functions look at when they begin, and fork(2) copies the mark. With a
// locked thread the child would wait for ever.
//
//go:nosplit
//go:norace
func rawFork(flags uintptr) int {
	r, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	return int(r)
}

//go:nosplit
//go:norace
func rawExit() {
	for {
		raw(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// rawPause sleeps for a limited time, so that a killed test leaves nothing for ever.
//
//go:nosplit
//go:norace
func rawPause() {
	ts := unix.Timespec{Sec: 120}
	raw(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	rawExit()
}

// rawChild forks a child that runs f, which is nosplit.
//
//go:nosplit
//go:norace
func rawChild(f func()) {
	runtime.LockOSThread()
	if rawFork(0) == 0 {
		f()
		rawExit()
	}
}

//go:nosplit
//go:norace
func raw6(nr, a, b, c, d uintptr) int {
	r, _, errno := syscall.RawSyscall6(nr, a, b, c, d, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	return int(r)
}
