package job

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sstop is SSTOP of sys/proc.h: stopped by a signal.
const sstop = 4

// IsStopped reports whether the process is stopped by a signal, and stays so.
func IsStopped(pid int) bool {
	return staysStopped(func() bool {
		k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		return err == nil && int(k.Proc.P_pid) == pid && k.Proc.P_stat == sstop
	}, time.Sleep)
}

// StopSelf stops zsbx until it is continued.
func StopSelf(func() bool) bool {
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	return true
}
