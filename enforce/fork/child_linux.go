package fork

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The functions marked "raw", here and in keeper*_linux.go and sweep_linux.go, are
// all the code that runs in a forked process which executes nothing. Such a process
// has one thread, a copy of the Go heap that nobody collects, or no heap at all
// (leanFork), and a runtime that believes in threads which are gone. The rules for
// them:
//
//   - only raw system calls, other raw functions and plain arithmetic;
//   - no allocation, no stack growth (go:nosplit, small frames), no defer, no
//     panic, no map, no string building, no interface call;
//   - no stores of pointers (write barriers) and no race or checkptr
//     instrumentation (go:norace, go:nocheckptr);
//   - all memory that is read or written was made before the fork.
//
// The functions of the runtime that bracket a fork are the ones package
// syscall uses; other programs of the Go world link to them by the same names.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// forkImage forks once. In the child it never returns.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkImage(j *image) (int, error) {
	// The raw functions must find room on the stack that they can't grow.
	growStack()
	syscall.ForkLock.Lock()
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, 0, uintptr(unsafe.Pointer(&j.sigmask)), 8, 0, 0)
	pid, errno := uintptr(0), syscall.ENOSYS
	if j.lean {
		pid, errno = leanFork(j)
	}
	if errno != 0 {
		j.lean, j.shared = false, false
		pid, errno = rawFork(j)
	}
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, errno
	}
	return int(pid), nil
}

// growStack makes sure of some free stack below its caller's frame.
//
//go:noinline
func growStack() {
	var room [16 << 10]byte
	runtime.KeepAlive(&room)
}

// rawFork is raw from the fork on.
//
//go:noinline
//go:norace
//go:nocheckptr
func rawFork(j *image) (uintptr, syscall.Errno) {
	sig := syscall.SIGCHLD
	if j.role == roleKeeper {
		sig = keeperExit
	}
	beforeFork()
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(sig)|j.namespaces, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		afterFork()
		return pid, errno
	}
	afterForkInChild()
	if j.role == roleKeeper {
		runKeeper(j)
	}
	runCommand(j)
	return 0, 0
}

// quit ends the process with a report for the caller. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func quit(j *image, stage, index uint32, errno int) {
	r := &j.mem.report
	r.stage, r.index, r.errno = stage, index, uint32(-errno)
	for {
		call(unix.SYS_EXIT_GROUP, 125, 0, 0, 0, 0, 0)
	}
}

// runSteps makes the steps in order and quits at the first that fails. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runSteps(j *image, steps []Step, stage uint32) {
	for i := range steps {
		s := &steps[i]
		s.args(steps, i)
		r := call(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Args[3], s.Args[4], s.Args[5])
		for try := 0; r == -int(unix.EINTR) && try < interruptions && s.Nr != unix.SYS_CLOSE; try++ { // close(2) is done all the same
			r = call(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Args[3], s.Args[4], s.Args[5])
		}
		if r < 0 && r > -4096 && !s.MayFail {
			quit(j, stage, uint32(i), r)
		}
		if s.Same.differs() {
			quit(j, stage, uint32(i), -int(unix.ESTALE))
		}
		s.result = uintptr(r)
		if s.Hold && r > 0 {
			j.mem.held = int32(r)
		}
		if s.Out != nil {
			*s.Out = uintptr(r)
		}
	}
}

// runCommand turns the process into the command. It never returns. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runCommand(j *image) {
	if j.role == roleCommand {
		runSteps(j, j.before, stageBefore)
	}
	if j.dir != nil {
		if r := call(unix.SYS_CHDIR, uintptr(unsafe.Pointer(j.dir)), 0, 0, 0, 0, 0); r < 0 {
			quit(j, stageSetup, setupDir, r)
		}
	}
	placeFiles(j)
	closeOnExec(j.nofile)
	runSteps(j, j.steps, stageCommand)
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&j.sigmask)), 0, 8, 0, 0)
	j.mem.report.begun = 1
	r := call(unix.SYS_EXECVE, uintptr(unsafe.Pointer(j.path)), uintptr(unsafe.Pointer(j.argv)), uintptr(unsafe.Pointer(j.envp)), 0, 0, 0)
	quit(j, stageExec, 0, r)
}

// placeFiles puts the files onto descriptors 0 to 2. Sources among these that
// would be overwritten before their turn are moved out of the way first. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func placeFiles(j *image) {
	for i := range j.files {
		if f := j.files[i]; f >= 0 && f < int32(i) {
			r := call(unix.SYS_FCNTL, uintptr(f), unix.F_DUPFD_CLOEXEC, 10, 0, 0, 0)
			if r < 0 {
				quit(j, stageSetup, setupFiles, r)
			}
			j.files[i] = int32(r)
		}
	}
	for i := range j.files {
		f := j.files[i]
		if f < 0 {
			continue
		}
		var r int
		if f == int32(i) {
			r = call(unix.SYS_FCNTL, uintptr(f), unix.F_SETFD, 0, 0, 0, 0)
		} else {
			r = call(unix.SYS_DUP3, uintptr(f), uintptr(i), 0, 0, 0, 0)
		}
		if r < 0 {
			quit(j, stageSetup, setupFiles, r)
		}
	}
}

// closeOnExec marks every descriptor from 3 on, so that none of those that
// zsbx's caller left open reaches the command. close_range(2) knows
// CLOSE_RANGE_CLOEXEC from Linux 5.11 on; before, one fcntl each. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func closeOnExec(nofile uintptr) {
	const closeRangeCloexec = 4
	if call(unix.SYS_CLOSE_RANGE, 3, ^uintptr(0)>>32, closeRangeCloexec, 0, 0, 0) >= 0 {
		return
	}
	for fd := uintptr(3); fd < nofile; fd++ {
		call(unix.SYS_FCNTL, fd, unix.F_SETFD, unix.FD_CLOEXEC, 0, 0, 0)
	}
}
