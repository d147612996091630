package fork

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The functions marked go:norace, here and in keeper*_linux.go, are all the code that
// runs in a new process which has executed nothing yet. Such a process has one thread,
// on a stack of its own, no Go scheduler, and no Go heap: that is left out of the copy,
// or is the caller's, which goes on using it. The rules for them:
//
//   - only raw system calls, other such functions and plain arithmetic;
//   - no allocation, no large frames, no recursion, no defer, no panic, no map, no string
//     building, no interface call;
//   - no stores of pointers (write barriers), no conversions of them (-race checks those),
//     and no race instrumentation;
//   - all memory that is read or written was made before the fork: a Memory, keeperMem,
//     or a variable of the package.
//
// The functions of the runtime that bracket a fork are the ones package
// syscall uses; other programs of the Go world link to them by the same names.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

// keeperExit is the signal that tells this process of the keeper's end, in the
// place of SIGCHLD (clone(2), "The child termination signal"). Like any SIGCONT it
// does nothing to a process that runs, and wakes one that is stopped, whoever
// stopped it: a stopped zsbx would outlive the session that the keeper ended. The
// keeper itself could not signal it from within its domain.
const keeperExit = syscall.SIGCONT

// heapArena is the size and alignment of the pieces that the Go heap grows by
// on 64-bit Linux, stacks of goroutines included.
const heapArena = 64 << 20

// forkImage makes the keeper of j, on a stack of its own. Where it does not share memory,
// its copy has not the part of the Go heap around here (madvise(2), MADV_DONTFORK): a
// keeper may stay for days, and would hold that memory. It does not make a start faster.
//
//go:noinline
//go:norace
func forkImage(j *image) (int, error) {
	flags := j.namespaces | unix.CLONE_SETTLS | uintptr(keeperExit)
	if j.shared {
		flags |= unix.CLONE_VM
	}
	syscall.ForkLock.Lock()
	var here byte
	heap := uintptr(unsafe.Pointer(&here)) &^ (heapArena - 1)
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, 0, uintptr(unsafe.Pointer(&j.sigmask)), 8, 0, 0)
	if !j.shared { // a hole makes madvise say ENOMEM, after it did the rest
		call(unix.SYS_MADVISE, heap, heapArena, unix.MADV_DONTFORK, 0, 0, 0)
	}
	asMainThread()
	beforeFork()
	r := rawClone(flags, j.mem.stack.top(), j.run, j, roleKeeper)
	afterFork()
	if !j.shared {
		call(unix.SYS_MADVISE, heap, heapArena, unix.MADV_DOFORK, 0, 0, 0)
	}
	syscall.ForkLock.Unlock()
	if r < 0 {
		return 0, syscall.Errno(-r)
	}
	return r, nil
}

// asMainThread gives the calling thread the main one's scheduling policy, which what is
// started inherits (sched(7)): the runtime's monitor may have another, and the threads
// that it made. See package cmd/internal/quiet.
//
//go:norace
func asMainThread() {
	if call(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0, 0, 0, 0) == unix.SCHED_BATCH &&
		call(unix.SYS_SCHED_GETSCHEDULER, uintptr(call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)), 0, 0, 0, 0, 0) == unix.SCHED_NORMAL {
		var priority int32
		call(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_NORMAL, uintptr(unsafe.Pointer(&priority)), 0, 0, 0)
	}
}

// call is a system call: the result, or the negative errno as the kernel gives it.
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

// runChild is all that a new process does. It never returns.
//
//go:norace
func runChild(j *image, r role) {
	switch r {
	case roleKeeper:
		runKeeper(j)
	case roleRest:
		j.holdRest()
	}
	runCommand(j)
}

// exit ends the process.
//
//go:norace
func exit(status uintptr) {
	for {
		call(unix.SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0)
	}
}

// fail reports to the caller what failed, and is false.
//
//go:norace
func (j *image) fail(stage, index uint32, errno int) bool {
	r := &j.mem.report
	r.stage, r.index, r.errno = stage, index, uint32(-errno)
	return false
}

// dropHandlers takes this process's signal handlers back, which must not run in the
// new one: execve(2) does so too late. What is ignored stays so. The clone3(2) that
// does it by a flag is refused in many containers.
//
//go:norace
func dropHandlers() {
	for sig := uintptr(1); sig <= 64; sig++ {
		var none, was kernelAction
		call(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&was)), 8, 0, 0)
		if was.handler == sigIgnore { // meanwhile all are blocked
			call(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&was)), 0, 8, 0, 0)
		}
	}
}

// runSteps makes the steps in order, until one fails, and reports whether none did.
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
		for try := 0; r == -int(unix.EINTR) && try < interruptions && s.Nr != unix.SYS_CLOSE; try++ { // close(2) is done all the same
			r = call(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Args[3], s.Args[4], s.Args[5])
		}
		if r < 0 && r > -4096 && !s.MayFail {
			return j.fail(stage, uint32(i), r)
		}
		if s.Same != nil && (s.Same.Got[0] != s.Same.Want[0] || s.Same.Got[1] != s.Same.Want[1]) {
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

// runCommand turns the process into the command. It dies with the keeper
// (PR_SET_PDEATHSIG(2const)): where somebody kills that before the command executes,
// nobody could find the command by its environment. It never returns.
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
		r := call(unix.SYS_EXECVE, uintptr(unsafe.Pointer(j.path)), uintptr(unsafe.Pointer(j.argv)), uintptr(unsafe.Pointer(j.envp)), 0, 0, 0)
		j.fail(stageExec, 0, r)
	}
	exit(125)
}

// prepare does what a command needs but for its execution, and reports whether that
// succeeded.
//
//go:norace
func (j *image) prepare() bool {
	closeRange(3, 1<<32-1, closeRangeCloexec, j.nofile)
	return j.runSteps(j.steps, stageCommand)
}

// closeRange closes every descriptor from first to last, or with closeRangeCloexec marks
// them, so that none of those that zsbx's caller left open reaches the command.
// close_range(2) knows that from Linux 5.11 on, and is refused in some containers; there
// it is a call for each that there may be.
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

// rawClone is clone(2): the child runs runChild(j, r), whose code is at run, on a stack
// that ends at top, and never returns. It gives the child's pid or a negative errno.
//
//go:noescape
func rawClone(flags, top, run uintptr, j *image, r role) int
