package cmd

import (
	"bytes"
	"os"
	"strconv"
)

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
