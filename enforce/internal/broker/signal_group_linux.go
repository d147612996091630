package broker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// groupTarget tells the processes that a kill(2) of many means.
type groupTarget struct {
	group int // process group, or 0 for everybody
	self  int // the caller's process, which comes last
}

// group answers kill(2) of 0 (the caller's process group), -1 (everybody) and
// other negative numbers (that process group): those of them that are the session's get the signal.
func (s *signalCall) group(to int) answer {
	self, fd, errno := openProcess(s.from.tid)
	if errno != 0 {
		return refused(errno)
	}
	defer unix.Close(fd)
	st, ok := statOf(self)
	if errno := s.describe(0); errno != 0 || !ok {
		return refused(unix.EPERM)
	}
	target := groupTarget{group: -to, self: self}
	switch to {
	case 0:
		target.group = st.Group
	case -1:
		target.group = 0
	}
	result := s.each(target)
	if target.group != st.Group {
		return refused(result)
	}
	return s.sendSelf(self, fd)
}

// each signals all of the target but the caller's own process. Whoever is made or
// changes parents meanwhile is met by another look, until two find nobody new.
func (s *signalCall) each(target groupTarget) unix.Errno {
	seen := map[string]bool{}
	result, below := s.outsideGroup(target.group), s.m.theSession()
	for look, quiet := 0, 0; look < 100 && quiet < 2; look++ {
		quiet++
		for _, pid := range below.processes() {
			st, ok := statOf(pid)
			id := fmt.Sprint(pid, st.Start)
			if !ok || pid == target.self || target.group != 0 && st.Group != target.group || seen[id] {
				continue
			}
			seen[id], quiet = true, 0
			switch errno := s.sendNumber(pid); {
			case errno == 0:
				result = 0
			case result != 0 && errno != unix.ESRCH && target.group != 0:
				result = errno
			}
		}
	}
	return result
}

// outsideGroup is the answer for a process group of which none is the session's:
// whether there is one.
func (s *signalCall) outsideGroup(group int) unix.Errno {
	if group != 0 && unix.Kill(-group, 0) != unix.ESRCH {
		return unix.EPERM
	}
	return unix.ESRCH
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
func (s *signalCall) sendSelf(self, pidfd int) answer {
	early := listenerFlags()&unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV == 0
	if early {
		if !s.m.queue.valid(s.n.id) {
			return refused(unix.EINTR)
		}
		if err := s.m.queue.send(s.n.id, answer{}); err != nil {
			return refused(unix.EINTR)
		}
	}
	s.deliver(pidfd, 0)
	return answer{}
}

// processes lists those that may be the session's: from its top downwards, or all that
// there are, which takes long on a busy machine, where the kernel does not list
// children (proc_tid_children(5), CONFIG_PROC_CHILDREN).
func (s *session) processes() []int {
	var found []int
	if !s.Keeper {
		found = append(found, s.Top)
	}
	found, ok := appendChildren(found, s.Top)
	if !ok {
		return numbersIn("/proc")
	}
	for i := 0; i < len(found); i++ {
		if found[i] != s.Top {
			found, _ = appendChildren(found, found[i])
		}
	}
	return found
}

// appendChildren adds the children of all of a process's threads. It is ok if one
// thread's could be read.
func appendChildren(to []int, pid int) (_ []int, ok bool) {
	task := "/proc/" + strconv.Itoa(pid) + "/task"
	for _, tid := range numbersIn(task) {
		b, err := readProc(task + "/" + strconv.Itoa(tid) + "/children")
		ok = ok || err == nil
		for _, f := range bytes.Fields(b) {
			if child, err := strconv.Atoi(string(f)); err == nil {
				to = append(to, child)
			}
		}
	}
	return to, ok
}

// numbersIn lists the entries of a directory of /proc that are numbers.
func numbersIn(dir string) []int {
	d, err := os.Open(dir)
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
