package job

import (
	"os"
	"runtime"
	"syscall"

	"github.com/zsbx/zsbx/internal/procfs"
	"golang.org/x/sys/unix"
)

// StopSelf stops zsbx, unless there is no reason any more, and returns once it was
// continued. It reports whether it was stopped: the kernel leaves out SIGTSTP where
// nobody could wake zsbx, in an orphaned process group, and where zsbx's caller had
// it ignored.
//
// The signal goes to this thread (tgkill(2)), which has it blocked until over has
// said that there is a reason still. A SIGCONT that comes after that takes the pending
// signal away (signal(7)), whether the keeper ends or the shell continues the job:
// zsbx never stops for what is over.
func StopSelf(over func() bool) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stop, old unix.Sigset_t
	stop.Val[0] = 1 << (syscall.SIGTSTP - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &stop, &old) != nil {
		return false
	}
	unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTSTP)
	if over() {
		unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGCONT)
	}
	before := switches()
	unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	return switches() > before
}

// switches counts how often this thread slept.
func switches() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return int64(u.Nvcsw)
}

// IsStopped reports whether the process is stopped by a signal, by the state in
// /proc/PID/stat (proc_pid_stat(5)).
func IsStopped(pid int) bool {
	s, err := procfs.Look(pid)
	return err == nil && s.State == "T"
}
