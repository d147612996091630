package enforce

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// notify asks whether this process can be the supervisor of a filter: be
// handed system calls, and fetch the sockets of the processes that made them.
func (a *asker) notify(yama byte, capabilities uint64) (bool, string) {
	if ok, why := a.action(unix.SECCOMP_RET_USER_NOTIF); !ok {
		return false, why
	}
	// No descriptor -1 can be fetched: EBADF, unless the call is not there.
	switch _, errno := a.ask("pidfd_getfd(2)", unix.SYS_PIDFD_GETFD, ^uintptr(0), 0, 0); errno {
	case unix.EBADF:
	case unix.ENOSYS:
		return false, "pidfd_getfd(2) (Linux 5.6) is not built into this kernel"
	case unix.EPERM, unix.EACCES:
		return false, "a seccomp filter of the container refuses pidfd_getfd(2), as Docker's does without --cap-add SYS_PTRACE"
	default:
		return false, "pidfd_getfd(2): " + errno.Error()
	}
	if why := seccomp.YamaRefuses(yama, capabilities); why != "" {
		return false, why
	}
	// There can be one supervisor in a line of filters. Without any filter
	// on this process there is none.
	mode, errno := a.ask("prctl(PR_GET_SECCOMP)", unix.SYS_PRCTL, unix.PR_GET_SECCOMP)
	if errno == 0 && mode == 0 {
		return true, ""
	}
	errno = fork.Retry(installListener)
	a.note("seccomp(2)", errno)
	switch errno {
	case 0:
		return true, ""
	case unix.EBUSY:
		return false, "this process has a supervisor already, and there can be one only: an outer zsbx, which still guards its own session, or a container's"
	case unix.EPERM, unix.EACCES:
		return false, "a seccomp filter of the container refuses another one with a supervisor"
	}
	return false, "a filter with a supervisor: " + errno.Error()
}

// yamaScope is kernel.yama.ptrace_scope, as a digit; 0 without Yama.
func (a *asker) yamaScope() byte {
	if text := a.read("/proc/sys/kernel/yama/ptrace_scope"); text != "" {
		return text[0]
	}
	return '0'
}

// installListener tries it, with a filter that allows everything, on a thread
// that ends afterwards.
func installListener() unix.Errno {
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread() // and no unlocking: the thread is not used again
		done <- seccomp.TryListener()
	}()
	return <-done
}
