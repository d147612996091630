package enforce

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeNotify asks whether this process can be the supervisor of a filter: be
// handed system calls, and fetch the sockets of the processes that made them.
func probeNotify(capabilities uint64) (bool, string) {
	if ok, why := probeAction(unix.SECCOMP_RET_USER_NOTIF); !ok {
		return false, why
	}
	// No descriptor -1 can be fetched: EBADF, unless the call is not there.
	switch _, _, errno := unix.RawSyscall(unix.SYS_PIDFD_GETFD, ^uintptr(0), 0, 0); errno {
	case unix.EBADF:
	case unix.ENOSYS:
		return false, "pidfd_getfd(2) (Linux 5.6) is not built into this kernel"
	default:
		return false, "a seccomp filter of the container refuses pidfd_getfd(2), as Docker's does without --cap-add SYS_PTRACE"
	}
	if why := yamaRefuses(yamaScope(), capabilities); why != "" {
		return false, why
	}
	// There can be one supervisor in a line of filters. Without any filter
	// on this process there is none.
	mode, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_SECCOMP, 0, 0)
	if errno == 0 && mode == 0 {
		return true, ""
	}
	switch installListener() {
	case 0:
		return true, ""
	case unix.EBUSY:
		return false, "this process has a supervisor already, and there can be one only: an outer zsbx, which goes on to guard its own session, or a container's"
	}
	return false, "a seccomp filter of the container refuses another one with a supervisor"
}

// yamaScope is kernel.yama.ptrace_scope, as a digit; 0 without Yama.
func yamaScope() byte {
	fd, err := unix.Open("/proc/sys/kernel/yama/ptrace_scope", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return '0'
	}
	defer unix.Close(fd)
	digit := []byte{'0'}
	unix.Read(fd, digit)
	return digit[0]
}

// installListener tries it, with a filter that allows everything, on a thread
// that ends afterwards.
func installListener() unix.Errno {
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread() // and no unlocking: the thread is not used again
		allow := Instruction{Code: bpfReturn, K: actAllow}
		prog := sockFprog{1, &allow}
		unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
		fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
			filterSpecAllow|unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
		if errno == 0 {
			unix.Close(int(fd))
		}
		done <- errno
	}()
	return <-done
}
