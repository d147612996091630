package job

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sstop is SSTOP of sys/proc.h: stopped by a signal.
const sstop = 4

// IsStopped reports whether the process is stopped by a signal, and stays so: reap stops
// every process for a moment, so that it can't change while it is looked at. If zsbx
// stopped itself then, nobody would wake it.
func IsStopped(pid int) bool {
	for range 6 {
		k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil || int(k.Proc.P_pid) != pid || k.Proc.P_stat != sstop {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

// StopSelf stops zsbx until it is continued.
func StopSelf(func() bool) bool {
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	return true
}
