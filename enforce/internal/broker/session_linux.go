package broker

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// session is whose processes a command may signal: all below top, which is the
// keeper, and none of them.
type session struct {
	top   int // its number
	pidfd int // of top, whose number is its own until it has been waited for; -1 if there is none
}

// member reports whether a process is the session's, if its number is kept from being used
// again by a pidfd that is still good afterwards. Where it changes
// parents just then, it is looked at again.
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

// maxDepth is how many generations below the session's top a process may be to
// be signalled.
const maxDepth = 1 << 12

// descends reports whether a process is below top, by the numbers of parents that
// parent gives. What it gives may be about another process that got the number
// meanwhile, but for top's and pid's own: so each is asked twice, in opposite
// order. A parent that is the same both times lived all the while between
// (it would have been replaced by a subreaper else), and so what was said by its number in between
// was said of it.
func descends(pid, top int, parent func(int) (int, bool)) bool {
	chain := []int{pid}
	for at := pid; at != top; {
		up, ok := parent(at)
		if !ok || up <= 0 || len(chain) > maxDepth {
			return false
		}
		chain, at = append(chain, up), up
	}
	for i := len(chain) - 2; i >= 0; i-- {
		if up, ok := parent(chain[i]); !ok || up != chain[i+1] {
			return false
		}
	}
	return true
}

// openProcess gives a pidfd of the process that has a thread.
func openProcess(tid int) (pid, pidfd int, _ unix.Errno) {
	fd, err := unix.PidfdOpen(tid, 0)
	if err == unix.EINVAL || err == unix.ENOENT { // not a process's first thread
		if tid = ProcessOf(tid); tid <= 0 {
			return 0, -1, unix.ESRCH
		}
		fd, err = unix.PidfdOpen(tid, 0)
	}
	return tid, fd, asErrno(err)
}

const noPidfd = -2

// PidOf is the number of what a pidfd of a process means (proc_pid_fdinfo(5)): -1 once it
// has been waited for. It is 0 for one in another PID namespace.
func PidOf(process string, pidfd int) int {
	info, _ := procfs.StatusOf("/proc/" + process + "/fdinfo/" + strconv.Itoa(pidfd))
	if f := info["Pid"]; len(f) == 1 {
		if pid, err := strconv.Atoi(f[0]); err == nil {
			return pid
		}
	}
	return noPidfd
}
