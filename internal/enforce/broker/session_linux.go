package broker

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// session has the processes that a command may signal: all below top, the keeper, but not the
// keeper itself.
type session struct {
	top   int // the keeper's number
	pidfd int // of top, whose number is not used again until it has been waited for; -1 if there is none
}

// member reports whether a process is the session's. The caller must pin its number by a pidfd,
// and the pidfd must still be good afterwards. member looks again if parents change meanwhile.
func (s *session) member(pid int) bool {
	if s.pidfd < 0 || pid == s.top {
		return false
	}
	parent := func(pid int) (int, bool) { st, err := procfs.Look(pid); return st.Parent, err == nil }
	for range 4 {
		if descends(pid, s.top, parent) {
			return unix.PidfdSendSignal(s.pidfd, 0, nil, 0) != unix.ESRCH
		}
	}
	return false
}

// maxDepth is how many generations below top a process may be to be signalled.
const maxDepth = 1 << 12

// descends reports whether a process is below top, by the parents that parent returns. Only the
// numbers of pid and top are pinned; any other may get a new process meanwhile. So descends
// asks for each parent twice, in opposite order. If both answers agree, that parent lived all
// the time between, or a subreaper would have replaced it. So all that was read by its number
// in between was about it.
func descends(pid, top int, parent func(int) (int, bool)) bool {
	chain := []int{pid}
	for at := pid; at != top; {
		up, ok := parent(at)
		if !ok || up <= 0 || len(chain) > maxDepth {
			return false
		}
		chain = append(chain, up)
		at = up
	}
	for i := len(chain) - 2; i >= 0; i-- {
		if up, ok := parent(chain[i]); !ok || up != chain[i+1] {
			return false
		}
	}
	return true
}

// openProcess returns the number and a pidfd of a thread's process.
func openProcess(tid int) (pid, pidfd int, _ unix.Errno) {
	fd, err := unix.PidfdOpen(tid, 0)
	if err == unix.EINVAL || err == unix.ENOENT { // not the first thread of its process
		tid = ProcessOf(tid)
		if tid <= 0 {
			return 0, -1, unix.ESRCH
		}
		fd, err = unix.PidfdOpen(tid, 0)
	}
	return tid, fd, asErrno(err)
}

const noPidfd = -2

// PidOf returns the number of the process that a pidfd refers to (proc_pid_fdinfo(5)). It is -1
// once that has been waited for, 0 for a process in another PID namespace, and noPidfd for
// other descriptors.
func PidOf(process string, pidfd int) int {
	info, _ := procfs.StatusOf("/proc/" + process + "/fdinfo/" + strconv.Itoa(pidfd))
	if f := info["Pid"]; len(f) == 1 {
		if pid, err := strconv.Atoi(f[0]); err == nil {
			return pid
		}
	}
	return noPidfd
}
