package broker

import (
	"os"

	"golang.org/x/sys/unix"
)

// exists answers signal 0, which delivers nothing, as the kernel would outside:
// this process is the caller's, in no domain.
func (s *signalCall) exists(first, second int) answer {
	pid, fd := first, -1
	var err error
	switch s.n.nr {
	case unix.SYS_KILL:
		err = unix.Kill(first, 0)
	case unix.SYS_TKILL:
		err = tgkill(-1, first)
	case unix.SYS_TGKILL:
		pid, err = second, tgkill(first, second)
	case unix.SYS_PIDFD_SEND_SIGNAL:
		var errno unix.Errno
		if fd, errno = s.from.descriptor(first); errno != 0 {
			return answer{proceed: true} // Landlock checks it
		}
		defer unix.Close(fd)
		pid = pidOf(fd)
		err = unix.PidfdSendSignal(fd, 0, nil, int(s.n.args[3]))
	default:
		return answer{proceed: true}
	}
	if err == nil && pid > 0 && !s.allowed(pid) {
		err = unix.EPERM
	}
	if err != nil {
		return refused(asErrno(err))
	}
	return answer{}
}

// tgkill is tgkill(2) with signal 0, or tkill(2) without a process.
func tgkill(pid, tid int) error {
	nr, a, b := uintptr(unix.SYS_TGKILL), uintptr(pid), uintptr(tid)
	if pid == -1 {
		nr, a, b = unix.SYS_TKILL, uintptr(tid), 0
	}
	if _, _, errno := unix.RawSyscall(nr, a, b, 0); errno != 0 {
		return errno
	}
	return nil
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
