package broker

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// group answers kill(2) of 0 (the caller's process group), -1 (everybody) and
// other negative numbers (that process group): those of them that are the session's get
// the signal, the caller's own process last.
func (s *signalCall) group(to int) answer {
	if s.sig == 0 {
		return refused(asErrno(unix.Kill(to, 0)))
	}
	self, fd, errno := openProcess(s.from.tid)
	if errno != 0 {
		return refused(errno)
	}
	defer unix.Close(fd)
	st, err := procfs.Look(self)
	if errno := s.describe(); errno != 0 || err != nil {
		return refused(unix.EPERM)
	}
	group := -to
	switch to {
	case 0:
		group = st.Group
	case -1:
		group = 0
	}
	result := s.each(group, self)
	if group != st.Group {
		return refused(result)
	}
	if !s.broker.queue.valid(s.id) {
		return refused(unix.EINTR)
	}
	// Before Linux 5.19 the signal would interrupt the very call, which would then be made
	// again: so it has its answer first.
	if listenerFlags()&unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV == 0 && s.broker.queue.send(s.id, answer{}) != nil {
		return refused(unix.EINTR)
	}
	s.deliver(self, fd)
	return answer{}
}

// each signals all of a process group, or everybody for 0, but self. Whoever is made or
// changes parents meanwhile is met by another look, until two find nobody new.
func (s *signalCall) each(group, self int) unix.Errno {
	type process struct {
		pid   int
		start uint64
	}
	seen := map[process]bool{}
	result := unix.ESRCH
	if group != 0 && unix.Kill(-group, 0) != unix.ESRCH {
		result = unix.EPERM // there is one, outside
	}
	for look, quiet := 0, 0; look < 100 && quiet < 2; look++ {
		quiet++
		all, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range all {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			st, err := procfs.Look(pid)
			id := process{pid, st.Start}
			if err != nil || pid == self || group != 0 && st.Group != group || seen[id] {
				continue
			}
			seen[id], s.process = true, pid
			if s.number() == 0 {
				quiet, result = 0, 0
			}
		}
	}
	return result
}
