package broker

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// This file sends signals for a command. Broker.signal reads the call. While a pidfd pins the
// receiver's number, session.member checks by the receiver's parents that it belongs to the
// session. deliver signals the receiver through that pidfd. Only signal 0, which delivers
// nothing, may go outside.

// signalCall is a call that signals a process.
type signalCall struct {
	*Call
	process int // as the call has it; 0 for none
	thread  int // as the call has it; 0 for none
	sig     int
	flags   uint64 // for pidfd_send_signal(2)
	info    Siginfo
}

// Siginfo is siginfo_t (sigaction(2)).
type Siginfo [128]byte

const siQueue = -1 // SI_QUEUE: the si_code that one process may send to another

// signal answers a call that signals processes, makes the kernel do so, or changes how one is
// scheduled.
func (b *Broker) signal(c *Call) answer {
	s := &signalCall{Call: c}
	switch c.nr {
	case unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_PIDFD_SEND_SIGNAL:
		return s.kill()
	case unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO: // the caller chooses what the receiver sees
		return s.ifSameProcess(s.arg(0), false)
	case unix.SYS_FCNTL: // F_SETOWN
		return s.ifSameProcess(s.arg(2), false)
	case unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR:
		return s.ifSameProcess(s.arg(0), true)
	case unix.SYS_SETPRIORITY: // PRIO_PROCESS
		return s.ifSameProcess(s.arg(1), true)
	}
	return refused(unix.EPERM)
}

// arg returns an argument of the call as the int for which the kernel takes it.
func (s *signalCall) arg(i int) int { return int(int32(s.args[i])) }

// kill answers a call that sends a signal.
func (s *signalCall) kill() answer {
	s.sig = s.arg(1)
	switch s.nr {
	case unix.SYS_KILL:
		s.process = s.arg(0)
	case unix.SYS_TKILL:
		s.thread = s.arg(0)
	case unix.SYS_TGKILL:
		s.process = s.arg(0)
		s.thread = s.arg(1)
		s.sig = s.arg(2)
	case unix.SYS_PIDFD_SEND_SIGNAL:
		s.flags = s.args[3]
		if s.args[2] != 0 && s.sig != 0 { // the caller chooses the siginfo_t
			return refused(unix.EPERM)
		}
	}
	if s.sig < 0 || s.sig > 64 {
		return refused(unix.EINVAL)
	}
	if s.nr == unix.SYS_PIDFD_SEND_SIGNAL {
		return s.descriptor(s.arg(0))
	}
	if s.nr == unix.SYS_KILL && s.process <= 0 {
		return s.group(s.process)
	}
	if s.sameProcess(s.process) || s.process == 0 && s.thread == s.from.tid {
		return answer{proceed: true}
	}
	if s.process < 0 || s.thread < 0 || s.process+s.thread == 0 {
		return refused(unix.EINVAL)
	}
	return refused(s.number())
}

// number signals the process or thread whose number is in the call.
func (s *signalCall) number() unix.Errno {
	n := s.process
	if s.thread != 0 {
		n = s.thread
	}
	process, fd, errno := openProcess(n)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	if s.thread != 0 && s.process != 0 && s.process != process {
		return unix.ESRCH
	}
	return s.send(process, fd)
}

// descriptor answers pidfd_send_signal(2), with a copy of the caller's descriptor.
func (s *signalCall) descriptor(fd int) answer {
	pidfd, errno := s.from.descriptor(fd)
	switch {
	case errno == unix.EBADF:
		return refused(errno)
	case errno != 0 && s.sig == 0:
		return answer{proceed: true} // Landlock checks it
	case errno != 0:
		return refused(unix.EPERM)
	}
	defer unix.Close(pidfd)
	pid := PidOf("self", pidfd)
	if pid == noPidfd {
		return refused(unix.EBADF)
	}
	if pid < 0 {
		return refused(unix.ESRCH)
	}
	if s.flags != 0 && s.sig != 0 { // since Linux 6.9 flags can ask for the process group
		return refused(unix.EINVAL)
	}
	return refused(s.send(pid, pidfd))
}

// sameProcess reports whether a number is the calling thread's or its process's. The thread waits
// for the answer, so neither number changes hands until the kernel continues the call. A sibling
// thread's number does not count, although the kernel accepts it for the process: the sibling can
// end, and the caller can delay itself until a process outside has that number.
func (s *signalCall) sameProcess(pid int) bool {
	return pid > 0 && (pid == s.from.tid || pid == ProcessOf(s.from.tid) && s.broker.queue.valid(s.id))
}

// ifSameProcess continues a call about the caller's own process, or with sibling about another
// of its threads.
func (s *signalCall) ifSameProcess(pid int, sibling bool) answer {
	if s.sameProcess(pid) {
		return answer{proceed: true}
	}
	task := fmt.Sprintf("/proc/%d/task/%d", pid, s.from.tid)
	if sibling && unix.Faccessat(unix.AT_FDCWD, task, unix.F_OK, 0) == nil && s.broker.queue.valid(s.id) {
		return answer{proceed: true}
	}
	return refused(unix.EPERM)
}

// describe fills in the siginfo_t with the caller's ids. Its code is SI_QUEUE, since the kernel
// lets nobody send kill(2)'s SI_USER to another process.
func (s *signalCall) describe() unix.Errno {
	who, err := s.from.status()
	if err != nil || who.process <= 0 {
		return unix.ESRCH
	}
	for at, n := range map[int]int{0: s.sig, 8: siQueue, 16: who.process, 20: who.uid} {
		binary.NativeEndian.PutUint32(s.info[at:], uint32(int32(n)))
	}
	return 0
}

// send signals a pidfd's process or a thread of it, if the process is the session's and the
// caller's user may signal it.
func (s *signalCall) send(pid, pidfd int) unix.Errno {
	if errno := s.describe(); errno != 0 {
		return errno
	}
	if s.sig != 0 && !s.broker.session.member(pid) || !s.allowed(pid) {
		return unix.EPERM
	}
	if !s.broker.queue.valid(s.id) {
		return unix.EINTR // nobody hears it
	}
	return s.deliver(pid, pidfd)
}

// allowed reports whether the caller's user may signal a process. It checks only where this
// process is root. Otherwise the command has the same user, and the kernel's check of this
// process is enough.
func (s *signalCall) allowed(pid int) bool {
	if os.Geteuid() != 0 {
		return true
	}
	who, err := s.from.status()
	if err != nil || who.process == pid {
		return err == nil
	}
	whom, err := caller{tid: pid}.status()
	return err == nil && who.maySignal(&whom)
}

// deliver signals through a pidfd. Before Linux 6.9 threads have no pidfds, so a thread is
// signalled by its numbers, right after a check that its process still exists.
func (s *signalCall) deliver(pid, pidfd int) unix.Errno {
	if s.sig == 0 || s.thread != 0 {
		if err := unix.PidfdSendSignal(pidfd, 0, nil, int(s.flags)); err != nil || s.sig == 0 {
			return asErrno(err)
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(s.thread), uintptr(s.sig),
			uintptr(unsafe.Pointer(&s.info)), 0, 0)
		return errno
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(pidfd), uintptr(s.sig),
		uintptr(unsafe.Pointer(&s.info)), 0, 0, 0)
	return errno
}

// group answers kill(2) for 0 (the caller's process group), -1 (all processes) and other
// negative numbers (that process group). Those that are the session's get the signal, the
// caller's own process last.
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
	// Before Linux 5.19 the signal would interrupt this very call and restart it. So the call
	// is answered first.
	if listenerFlags()&unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV == 0 && s.broker.queue.send(s.id, answer{}) != nil {
		return refused(unix.EINTR)
	}
	s.deliver(self, fd)
	return answer{}
}

// each signals all processes of a group, or all for 0, except self. Processes can appear or
// change parents meanwhile, so it looks again until two looks find nobody new.
func (s *signalCall) each(group, self int) unix.Errno {
	type process struct {
		pid   int
		start uint64
	}
	seen := map[process]bool{}
	result := unix.ESRCH
	if group != 0 && unix.Kill(-group, 0) != unix.ESRCH {
		result = unix.EPERM // the group exists, outside
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
			seen[id] = true
			s.process = pid
			if s.number() == 0 {
				quiet = 0
				result = 0
			}
		}
	}
	return result
}
