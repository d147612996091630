package fork

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The functions marked go:norace, here and in keeper*_linux.go, are all the code that runs in a
// new process before execve(2). Such a process has one thread with its own stack, and no Go
// scheduler. It has no Go heap either, which is left out of the copy. The rules for these functions:
//
//   - only raw system calls, other such functions and plain arithmetic;
//   - no allocation, no large frames, no recursion, no defer, no panic, no map, no string
//     building, no interface call;
//   - no stores of pointers (write barriers), no conversions of them (-race checks those),
//     and no race instrumentation;
//   - all memory that is read or written was made before the fork: a Memory, keeperMem,
//     or a variable of the package.

// keeperExit is the signal that this process gets when the keeper ends, instead of SIGCHLD
// (clone(2), "The child termination signal"). SIGCONT does nothing to a running process, but
// wakes a stopped one. Otherwise a stopped zsbx would outlive the session that the keeper
// ended. The keeper itself can't send it out of its domain.
const keeperExit = syscall.SIGCONT

// heapArena is the size and alignment of the pieces by which the Go heap grows on 64-bit Linux.
// Stacks of goroutines are in it, too.
const heapArena = 64 << 20

// forkImage makes the keeper of j, with its own stack. The copy lacks this arena of the Go heap
// (madvise(2), MADV_DONTFORK), since a keeper may run for days and would keep that memory. This
// does not make a start faster.
func forkImage(j *image) (int, error) {
	var here byte
	heap := uintptr(unsafe.Pointer(&here)) &^ (heapArena - 1)
	syscall.ForkLock.Lock()
	r := cloneKeeper(j, heap)
	syscall.ForkLock.Unlock()
	if r < 0 {
		return 0, syscall.Errno(-r)
	}
	return r, nil
}

// cloneKeeper is clone(2) for the keeper. No signal may be handled in it before dropHandlers, so
// all are blocked meanwhile. This function and what it calls have no check for the stack's end,
// so Go does not move the goroutine to another thread here.
//
//go:nosplit
//go:norace
func cloneKeeper(j *image, heap uintptr) int {
	all := ^uint64(0)
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&j.sigmask)), 8, 0, 0)
	// With a hole in the range it does the rest and returns ENOMEM.
	call(unix.SYS_MADVISE, heap, heapArena, unix.MADV_DONTFORK, 0, 0, 0)
	r := rawClone(j.namespaces|unix.CLONE_SETTLS|uintptr(keeperExit), j.keeperStack, j.run, j, roleKeeper)
	call(unix.SYS_MADVISE, heap, heapArena, unix.MADV_DOFORK, 0, 0, 0)
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&j.sigmask)), 0, 8, 0, 0)
	return r
}

// call makes a system call and returns the result, or the negative errno as the kernel does.
//
//go:nosplit
//go:norace
func call(nr, a1, a2, a3, a4, a5, a6 uintptr) int {
	n, _, errno := syscall.RawSyscall6(nr, a1, a2, a3, a4, a5, a6)
	if errno != 0 {
		return -int(errno)
	}
	return int(n)
}

// runChild runs a new process. It never returns.
//
//go:norace
func runChild(j *image, r role) {
	if r == roleKeeper {
		runKeeper(j)
	}
	runCommand(j)
}

// exit ends the process, which has one thread. A filter that hands exit_group(2) over is
// already installed, perhaps before anybody answers.
//
//go:norace
func exit(status uintptr) {
	for {
		call(unix.SYS_EXIT, status, 0, 0, 0, 0, 0)
	}
}

// fail reports to the caller what failed. It returns false.
//
//go:norace
func (j *image) fail(stage, index uint32, errno int) bool {
	r := &j.mem.report
	r.stage = stage
	r.index = index
	r.errno = uint32(-errno)
	return false
}

// kernelAction is the kernel's struct sigaction, for rt_sigaction(2).
type kernelAction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

const sigIgnore = 1 // SIG_IGN

// dropHandlers resets the signal handlers, which must not run in the new process before
// execve(2) resets them. Ignored signals stay ignored. clone3(2) has a flag for this, but many
// containers refuse clone3(2).
//
//go:norace
func dropHandlers() {
	for sig := uintptr(1); sig <= 64; sig++ {
		var none, was kernelAction
		call(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&was)), 8, 0, 0)
		if was.handler == sigIgnore { // all signals are blocked meanwhile
			call(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&was)), 0, 8, 0, 0)
		}
	}
}

// runSteps makes the steps in order until one fails. It reports whether all succeeded.
//
//go:norace
func (j *image) runSteps(steps []Step, stage uint32) bool {
	for i := range steps {
		s := &steps[i]
		for a, n := range s.Back {
			if n != 0 {
				s.Args[a] = steps[i-int(n)].result
			}
		}
		r := call(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Args[3], s.Args[4], s.Args[5])
		again := s.Nr != unix.SYS_CLOSE // which closes even if it returns EINTR
		for try := 0; again && r == -int(unix.EINTR) && try < interruptions; try++ {
			r = call(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Args[3], s.Args[4], s.Args[5])
		}
		if r < 0 && r > -4096 && !s.MayFail {
			return j.fail(stage, uint32(i), r)
		}
		if s.Same != nil && s.Same.differ() {
			return j.fail(stage, uint32(i), -int(unix.ESTALE))
		}
		s.result = uintptr(r)
		if s.Hold && r > 0 {
			j.mem.held = int32(r)
		}
		if s.Out != nil {
			*s.Out = uintptr(r)
		}
	}
	return true
}

// differ reports whether the words differ.
//
//go:norace
//go:nosplit
func (s *Same) differ() bool {
	return (s.Got[0]^s.Want[0])&^s.Ignore[0] != 0 || (s.Got[1]^s.Want[1])&^s.Ignore[1] != 0
}

// runCommand turns the process into the command. It never returns. The process dies with the
// keeper until execve(2) (PR_SET_PDEATHSIG(2const)). If the keeper were killed before, nobody
// could find the process by its environment.
//
//go:norace
func runCommand(j *image) {
	call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	if call(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0) != j.mem.keeper {
		exit(125)
	}
	if j.prepare() {
		call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&j.sigmask)), 0, 8, 0, 0)
		j.mem.report.begun = 1
		r := call(unix.SYS_EXECVE, uintptr(unsafe.Pointer(j.path)),
			uintptr(unsafe.Pointer(j.argv)), uintptr(unsafe.Pointer(j.envp)), 0, 0, 0)
		j.fail(stageExec, 0, r)
	}
	exit(125)
}

// prepare does all that a command needs before execve(2), and reports whether that succeeded.
//
//go:norace
func (j *image) prepare() bool {
	closeRange(3, 1<<32-1, closeRangeCloexec, j.nofile)
	return j.runSteps(j.steps, stageCommand)
}

// closeRange closes the descriptors from first to last, or with closeRangeCloexec marks them
// close-on-exec, so that the command gets none that zsbx's caller left open. close_range(2)
// knows that flag since Linux 5.11, and some containers refuse it. Then closeRange makes one
// call for each possible descriptor.
//
//go:norace
func closeRange(first, last, flags, nofile uintptr) {
	if call(unix.SYS_CLOSE_RANGE, first, last, flags, 0, 0, 0) >= 0 {
		return
	}
	for fd := first; fd <= last && fd < nofile; fd++ {
		if flags == closeRangeCloexec {
			call(unix.SYS_FCNTL, fd, unix.F_SETFD, unix.FD_CLOEXEC, 0, 0, 0)
		} else {
			call(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		}
	}
}

const closeRangeCloexec = 4

// rawClone is clone(2). The child runs runChild(j, r), whose code is at run, on a stack that
// ends at top, and never returns. The result is the child's pid or a negative errno.
//
//go:noescape
func rawClone(flags, top, run uintptr, j *image, r role) int
