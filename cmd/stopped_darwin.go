package cmd

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sstop is SSTOP of sys/proc.h: stopped by a signal.
const sstop = 4

// isStopped reports whether the process is stopped by a signal, and stays so.
func isStopped(pid int) bool {
	return staysStopped(func() bool {
		k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		return err == nil && int(k.Proc.P_pid) == pid && k.Proc.P_stat == sstop
	}, time.Sleep)
}

// stopSelf stops zsbx until it is continued.
func stopSelf(func() bool) bool {
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	return true
}
