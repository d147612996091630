package job

import (
	"os"
	"runtime"
	"syscall"

	"github.com/zsbx/zsbx/internal/procfs"
	"golang.org/x/sys/unix"
)

// StopSelf stops zsbx, unless over says that there is no reason any more, and returns
// once zsbx was continued. It reports whether zsbx was stopped: the kernel drops SIGTSTP
// in an orphaned process group, where nobody could wake zsbx, and if zsbx's caller had it
// ignored.
//
// The signal goes to this thread (tgkill(2)), which blocks it until over has been asked.
// A SIGCONT that comes later discards the pending signal (signal(7)), whether the keeper
// ends or the shell continues the job. So zsbx never stops for a reason that is gone.
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

// switches returns how often this thread has slept.
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
