package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How signals are sent for a command: decideSignal reads the call, member asks whether
// the receiver is the session's, by its parents, while a pidfd pins its number, and
// send signals by that pidfd. Signal 0 alone goes outside: it delivers nothing.
// Groups are in signal_group_linux.go, signal 0 is in signal_zero_linux.go.

// signalCall is a call by which a process is to be signalled.
type signalCall struct {
	m    *mediator
	n    *notification
	from caller
	sig  int
	info Siginfo
}

// Siginfo is siginfo_t as sigaction(2) has it.
type Siginfo [128]byte

const siQueue = -1 // SI_QUEUE: what one process may say to another of how a signal was sent

// decideSignal answers one call, if it is one of those.
func (m *mediator) decideSignal(n *notification, t caller) (answered bool, _ answer) {
	first, second := int(int32(n.args[0])), int(int32(n.args[1]))
	s := &signalCall{m: m, n: n, from: t, sig: second}
	switch n.nr {
	case unix.SYS_TGKILL, unix.SYS_RT_TGSIGQUEUEINFO:
		s.sig = int(int32(n.args[2]))
	case unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL:
	case unix.SYS_FCNTL: // F_SETOWN
		return true, s.ifSameProcess(int(int32(n.args[2])))
	case unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR:
		return true, s.ifSameProcess(first)
	case unix.SYS_SETPRIORITY: // PRIO_PROCESS
		return true, s.ifSameProcess(second)
	default:
		return false, answer{}
	}
	if s.sig == 0 {
		return true, s.exists(first, second)
	}
	if s.sig < 0 || s.sig > 64 {
		return true, refused(unix.EINVAL)
	}
	switch n.nr {
	case unix.SYS_KILL:
		if first <= 0 {
			return true, s.group(first)
		}
		return true, s.process(first, 0)
	case unix.SYS_RT_SIGQUEUEINFO:
		return true, s.process(first, n.args[2])
	case unix.SYS_TKILL:
		return true, s.thread(0, first, 0)
	case unix.SYS_TGKILL:
		return true, s.thread(first, second, 0)
	case unix.SYS_RT_TGSIGQUEUEINFO:
		return true, s.thread(first, second, n.args[3])
	}
	return true, s.descriptor(first)
}

// sameProcess reports whether the calling thread is one of a process. It waits for the answer,
// so that the number stays its process's until the kernel goes on with the call.
func (s *signalCall) sameProcess(pid int) bool {
	if pid <= 0 {
		return false
	}
	if pid == s.from.tid {
		return true
	}
	return unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/task/%d", pid, s.from.tid), unix.F_OK, 0) == nil && s.m.queue.valid(s.n.id)
}

// ifSameProcess lets a call go on that names the caller's own process.
func (s *signalCall) ifSameProcess(pid int) answer {
	if s.sameProcess(pid) {
		return answer{proceed: true}
	}
	return refused(unix.EPERM)
}

// openProcess gives a pidfd of the process that has a thread.
func openProcess(tid int) (pid, pidfd int, _ unix.Errno) {
	fd, err := unix.PidfdOpen(tid, 0)
	if err == unix.EINVAL || err == unix.ENOENT { // not a process's first thread
		st, statusErr := caller{tid: tid}.status()
		if statusErr != nil || st.process <= 0 {
			return 0, -1, unix.ESRCH
		}
		tid = st.process
		fd, err = unix.PidfdOpen(tid, 0)
	}
	if err != nil {
		return 0, -1, asErrno(err)
	}
	return tid, fd, 0
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
		pid, fd, errno := openProcess(s.from.tid)
		if errno != 0 {
			return unix.ESRCH
		}
		unix.Close(fd)
		uid := os.Getuid()
		if uid == 0 {
			who, err := s.from.status()
			if err != nil {
				return unix.ESRCH
			}
			uid = who.uid
		}
		code := int32(siQueue)
		binary.NativeEndian.PutUint32(s.info[8:], uint32(code))
		binary.NativeEndian.PutUint32(s.info[16:], uint32(pid))
		binary.NativeEndian.PutUint32(s.info[20:], uint32(uid))
	}
	binary.NativeEndian.PutUint32(s.info[0:], uint32(s.sig))
	return 0
}

// send signals what a pidfd means, if that is the process with the number and it is the session's.
func (s *signalCall) send(pid, pidfd int, flags uint64) unix.Errno {
	switch {
	case !s.m.member(pid), !s.allowed(pid):
		return unix.EPERM
	case !s.m.queue.valid(s.n.id):
		return unix.EINTR // nobody hears it
	}
	return s.deliver(pidfd, flags)
}

func (s *signalCall) deliver(pidfd int, flags uint64) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(pidfd), uintptr(s.sig),
		uintptr(unsafe.Pointer(&s.info)), uintptr(flags), 0, 0)
	return errno
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
	if !s.sameProcess(process) && (!s.m.member(process) || !s.allowed(process)) {
		return refused(unix.EPERM)
	}
	if !s.m.queue.valid(s.n.id) {
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
	if s.n.args[3]&processGroup != 0 {
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
	pid := pidOf(pidfd)
	switch {
	case pid == noPidfd:
		return refused(unix.EBADF)
	case pid < 0:
		return refused(unix.ESRCH)
	}
	if errno := s.describe(s.n.args[2]); errno != 0 {
		return refused(errno)
	}
	return refused(s.send(pid, pidfd, s.n.args[3]))
}

const noPidfd = -2

// pidOf is the number of what a pidfd means (proc_pid_fdinfo(5)): -1 once it has been
// waited for. It is 0 for one in another PID namespace.
func pidOf(pidfd int) int {
	b, _ := readProc("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	for line := range bytes.Lines(b) {
		if value, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil {
				return noPidfd
			}
			return pid
		}
	}
	return noPidfd
}
