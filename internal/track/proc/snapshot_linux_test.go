package proc

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSnapshotUnknown: a process that can't be looked at may live, so a snapshot without it would
// say that a session has ended.
func TestSnapshotUnknown(t *testing.T) {
	defer func() { look = Look }()
	self := os.Getpid()
	for errno, known := range map[unix.Errno]bool{unix.ENOENT: true, unix.ESRCH: true, unix.EACCES: true, unix.EPERM: true,
		unix.EMFILE: false, unix.ENFILE: false, unix.ENOMEM: false, unix.EIO: false} {
		look = func(pid int) (Process, error) {
			if pid == self {
				return Process{}, &os.PathError{Op: "open", Path: "/proc/self/stat", Err: errno}
			}
			return Look(pid)
		}
		table, err := Snapshot()
		if known != (err == nil) {
			t.Errorf("%v: %v", errno, err)
		}
		if err == nil && (len(table.Procs) == 0 || table.Procs[self].Pid != 0) {
			t.Errorf("%v: %d processes", errno, len(table.Procs))
		}
	}
}
