package broker

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// group answers kill(2) of 0 (the caller's process group), -1 (everybody) and
// other negative numbers (that process group): those of them that are the session's get
// the signal, the caller's own process last.
func (s *signalCall) group(to int) answer {
	self, fd, errno := openProcess(s.from.tid)
	if errno != 0 {
		return refused(errno)
	}
	defer unix.Close(fd)
	st, err := procfs.Look(self)
	if errno := s.describe(0); errno != 0 || err != nil {
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
	return s.sendSelf(fd)
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
		for _, pid := range processes() {
			st, err := procfs.Look(pid)
			id := process{pid, st.Start}
			if err != nil || pid == self || group != 0 && st.Group != group || seen[id] {
				continue
			}
			if seen[id] = true; !s.broker.session.member(pid) {
				continue
			}
			quiet = 0
			switch errno := s.sendNumber(pid); {
			case errno == 0:
				result = 0
			case result != 0 && errno != unix.ESRCH && group != 0:
				result = errno
			}
		}
	}
	return result
}

func (s *signalCall) sendNumber(pid int) unix.Errno {
	pid, fd, errno := openProcess(pid)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	return s.send(pid, fd, 0)
}

// sendSelf signals the caller's own process. Before Linux 5.19 that would
// interrupt the very call, which would then be made again: so it has its answer first.
func (s *signalCall) sendSelf(pidfd int) answer {
	early := listenerFlags()&unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV == 0
	if early {
		if !s.broker.queue.valid(s.id) {
			return refused(unix.EINTR)
		}
		if err := s.broker.queue.send(s.id, answer{}); err != nil {
			return refused(unix.EINTR)
		}
	}
	s.deliver(pidfd, 0)
	return answer{}
}

// processes lists all that /proc shows.
func processes() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
