package fork

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startApart forks twice: the process between ends at once, and the program
// becomes init's, or the nearest subreaper's.
func startApart(c *Command) error {
	var m Memory
	defer m.free()
	own := Command{Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Files: c.Files}
	j, err := newImage(&own, &m)
	if err != nil {
		return err
	}
	defer j.release()
	growStack()
	syscall.ForkLock.Lock()
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, 0, uintptr(unsafe.Pointer(&j.sigmask)), 8, 0, 0)
	pid := forkApart(j)
	syscall.ForkLock.Unlock()
	if pid < 0 {
		return fmt.Errorf("fork: %w", syscall.Errno(-pid))
	}
	(&Process{KeeperPid: pid}).waitKeeper()
	runtime.KeepAlive(c)
	return j.mem.report.err(&own)
}

// forkApart forks the process between. Like the program until that executes, it
// borrows this process's memory, and this thread waits for it: a copy would take
// longer to make and to give back than all the rest. What spawn says of its frame
// goes for this one too.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkApart(j *image) int {
	beforeFork()
	pid := rawVfork(vforkFlags)
	if pid == 0 {
		afterForkInChild()
		runApart(j)
	}
	afterFork()
	return pid
}

// runApart is the process between. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runApart(j *image) {
	call(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	if pid := spawn(j); pid < 0 {
		quit(j, stageSetup, setupFork, pid)
	}
	for {
		call(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}
