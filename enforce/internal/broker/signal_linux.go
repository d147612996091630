package broker

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How signals are sent for a command: Broker.signal reads the call, member asks whether
// the receiver is the session's, by its parents, while a pidfd pins its number, and
// send signals by that pidfd. Signal 0 alone goes outside: it delivers nothing.
// Groups are in signal_group_linux.go.

// signalCall is a call by which a process is to be signalled.
type signalCall struct {
	*Call
	sig  int
	info Siginfo
}

// Siginfo is siginfo_t as sigaction(2) has it.
type Siginfo [128]byte

const siQueue = -1 // SI_QUEUE: what one process may say to another of how a signal was sent

// signal answers a call that signals processes, or has the kernel do so, or changes
// how one runs.
func (m *Broker) signal(c *Call) answer {
	first, second := int(int32(c.args[0])), int(int32(c.args[1]))
	s := &signalCall{Call: c, sig: second}
	switch c.nr {
	case unix.SYS_TGKILL, unix.SYS_RT_TGSIGQUEUEINFO:
		s.sig = int(int32(c.args[2]))
	case unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL:
	case unix.SYS_FCNTL: // F_SETOWN
		return s.ifSameProcess(int(int32(c.args[2])), false)
	case unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR:
		return s.ifSameProcess(first, true)
	case unix.SYS_SETPRIORITY: // PRIO_PROCESS
		return s.ifSameProcess(second, true)
	default:
		return refused(unix.EPERM)
	}
	if s.sig == 0 {
		return s.exists(first, second)
	}
	if s.sig < 0 || s.sig > 64 {
		return refused(unix.EINVAL)
	}
	switch c.nr {
	case unix.SYS_KILL:
		if first <= 0 {
			return s.group(first)
		}
		return s.process(first, 0)
	case unix.SYS_RT_SIGQUEUEINFO:
		return s.process(first, c.args[2])
	case unix.SYS_TKILL:
		return s.thread(0, first, 0)
	case unix.SYS_TGKILL:
		return s.thread(first, second, 0)
	case unix.SYS_RT_TGSIGQUEUEINFO:
		return s.thread(first, second, c.args[3])
	}
	return s.descriptor(first)
}

// exists answers signal 0, which delivers nothing, as the kernel would outside:
// this process is the caller's, in no domain.
func (s *signalCall) exists(first, second int) answer {
	pid := first
	var err error
	switch s.nr {
	case unix.SYS_TGKILL:
		pid = second
		fallthrough
	case unix.SYS_KILL, unix.SYS_TKILL:
		if _, _, errno := unix.RawSyscall(uintptr(s.nr), uintptr(first), uintptr(second), 0); errno != 0 {
			err = errno
		}
	case unix.SYS_PIDFD_SEND_SIGNAL:
		fd, errno := s.from.descriptor(first)
		if errno != 0 {
			return answer{proceed: true} // Landlock checks it
		}
		defer unix.Close(fd)
		pid, err = PidOf("self", fd), unix.PidfdSendSignal(fd, 0, nil, int(s.args[3]))
	default:
		return answer{proceed: true}
	}
	switch {
	case err != nil:
		return refused(asErrno(err))
	case pid > 0 && !s.allowed(pid):
		return refused(unix.EPERM)
	}
	return answer{}
}

// process answers kill(2) of one process, and rt_sigqueueinfo(2).
func (s *signalCall) process(pid int, info uint64) answer {
	if s.sameProcess(pid) {
		return answer{proceed: true}
	}
	if pid <= 0 {
		return refused(unix.ESRCH)
	}
	pid, fd, errno := openProcess(pid)
	if errno != 0 {
		return refused(errno)
	}
	defer unix.Close(fd)
	if errno := s.describe(info); errno != 0 {
		return refused(errno)
	}
	return refused(s.send(pid, fd, 0))
}

// thread answers tgkill(2), tkill(2) and rt_tgsigqueueinfo(2). Those to another process's thread
// go by its numbers, of process and thread: there is no pidfd of a
// thread before Linux 6.9. They are looked at last of all.
func (s *signalCall) thread(pid, tid int, info uint64) answer {
	if tid == s.from.tid && pid == 0 || pid != 0 && s.sameProcess(pid) {
		return answer{proceed: true}
	}
	if tid <= 0 || pid < 0 {
		return refused(unix.EINVAL)
	}
	process, fd, errno := openProcess(tid)
	if errno != 0 {
		return refused(errno)
	}
	defer unix.Close(fd)
	if pid != 0 && pid != process {
		return refused(unix.ESRCH)
	}
	if errno := s.describe(info); errno != 0 {
		return refused(errno)
	}
	if !s.sameProcess(process) {
		if errno := s.may(process); errno != 0 {
			return refused(errno)
		}
	}
	if !s.broker.queue.valid(s.id) {
		return refused(unix.EINTR)
	}
	if err := unix.PidfdSendSignal(fd, 0, nil, 0); err != nil {
		return refused(asErrno(err))
	}
	_, _, errno = unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(process), uintptr(tid), uintptr(s.sig),
		uintptr(unsafe.Pointer(&s.info)), 0, 0)
	return refused(errno)
}

// descriptor answers pidfd_send_signal(2), by a copy of the caller's descriptor.
func (s *signalCall) descriptor(fd int) answer {
	const processGroup = 1 << 2 // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9
	if s.args[3]&processGroup != 0 {
		return refused(unix.EINVAL)
	}
	pidfd, errno := s.from.descriptor(fd)
	switch {
	case errno == unix.EBADF:
		return refused(errno)
	case errno != 0:
		return refused(unix.EPERM)
	}
	defer unix.Close(pidfd)
	pid := PidOf("self", pidfd)
	switch {
	case pid == noPidfd:
		return refused(unix.EBADF)
	case pid < 0:
		return refused(unix.ESRCH)
	}
	if errno := s.describe(s.args[2]); errno != 0 {
		return refused(errno)
	}
	return refused(s.send(pid, pidfd, s.args[3]))
}

// sameProcess reports whether a number is the calling thread's or its process's. Both stay
// theirs until the kernel goes on with the call, since the thread waits for the answer. That
// of a sibling does not, although the kernel takes it for the process: the sibling can end,
// and the caller see to it that it gets no processor before somebody outside has the number.
func (s *signalCall) sameProcess(pid int) bool {
	return pid > 0 && (pid == s.from.tid || pid == ProcessOf(s.from.tid) && s.broker.queue.valid(s.id))
}

// ifSameProcess lets a call go on that names the caller's own process, or with sibling another
// thread of it.
func (s *signalCall) ifSameProcess(pid int, sibling bool) answer {
	task := fmt.Sprintf("/proc/%d/task/%d", pid, s.from.tid)
	if s.sameProcess(pid) || sibling && unix.Faccessat(unix.AT_FDCWD, task, unix.F_OK, 0) == nil && s.broker.queue.valid(s.id) {
		return answer{proceed: true}
	}
	return refused(unix.EPERM)
}

// describe makes what the receiver is told: that of the caller's memory, or who
// the caller is. kill(2)'s own SI_USER nobody may claim to another.
func (s *signalCall) describe(at uint64) unix.Errno {
	if at != 0 {
		b, errno := s.from.memory(at, len(s.info))
		if errno != 0 {
			return unix.EFAULT
		}
		copy(s.info[:], b)
		if code := int32(binary.NativeEndian.Uint32(b[8:])); code >= 0 || code == -6 { // SI_TKILL
			return unix.EPERM
		}
	} else {
		who, err := s.from.status()
		if err != nil || who.process <= 0 {
			return unix.ESRCH
		}
		code := int32(siQueue)
		binary.NativeEndian.PutUint32(s.info[8:], uint32(code))
		binary.NativeEndian.PutUint32(s.info[16:], uint32(who.process))
		binary.NativeEndian.PutUint32(s.info[20:], uint32(who.uid))
	}
	binary.NativeEndian.PutUint32(s.info[0:], uint32(s.sig))
	return 0
}

// may reports whether a process is the session's, and the caller's user may signal it.
func (s *signalCall) may(pid int) unix.Errno {
	if !s.broker.session.member(pid) || !s.allowed(pid) {
		return unix.EPERM
	}
	return 0
}

// allowed reports whether the caller's user may signal a process. Only root has
// to be asked that for another: what anybody else's command may not do, this
// process may not do either.
func (s *signalCall) allowed(pid int) bool {
	if os.Geteuid() != 0 {
		return true
	}
	who, err := s.from.status()
	if err != nil {
		return false
	}
	if who.identity.uid == 0 && who.uid == 0 {
		return true
	}
	whom, err := caller{pid}.status()
	return err == nil && who.maySignal(&whom)
}

// send signals what a pidfd means, if that is the process with the number and it is the session's.
func (s *signalCall) send(pid, pidfd int, flags uint64) unix.Errno {
	if errno := s.may(pid); errno != 0 {
		return errno
	}
	if !s.broker.queue.valid(s.id) {
		return unix.EINTR // nobody hears it
	}
	return s.deliver(pidfd, flags)
}

func (s *signalCall) deliver(pidfd int, flags uint64) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(pidfd), uintptr(s.sig),
		uintptr(unsafe.Pointer(&s.info)), uintptr(flags), 0, 0)
	return errno
}
