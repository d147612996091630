package cmd

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopSelf stops zsbx and returns once it was continued. The signal goes to
// this thread (tgkill(2)): sent to the process, another one might take it, and
// this one would run on for a while.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}

// isStopped tells whether the process is stopped by a signal, by the state in
// /proc/PID/stat (proc_pid_stat(5)).
func isStopped(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	return ok && len(rest) > 0 && rest[0] == 'T'
}
