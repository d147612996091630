package seccomp

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
)

// FilterSpecAllow is SECCOMP_FILTER_FLAG_SPEC_ALLOW. Without it, kernels before 5.16 turn on a
// mitigation (Speculative Store Bypass) for filtered processes, which slows the whole command
// down.
const FilterSpecAllow = 1 << 2

// Tag marks the step that installs a filter.
const Tag fork.Tag = "seccomp"

// sockFprog is struct sock_fprog of linux/filter.h.
type sockFprog struct {
	length uint16
	filter *Instruction
}

// Step returns the step that installs the filter. The filter checks all later steps.
func (f *Filter) Step(m *fork.Memory, flags uintptr) fork.Step {
	prog := fork.Put(m, sockFprog{uint16(len(f.Program)), &fork.PutSlice(m, f.Program)[0]})
	return fork.Step{
		Tag: Tag, Name: "seccomp(SECCOMP_SET_MODE_FILTER)", Nr: unix.SYS_SECCOMP,
		Args: [6]uintptr{unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog))},
	}
}

// TryListener tries SECCOMP_FILTER_FLAG_NEW_LISTENER on the calling thread, with a filter that
// allows everything, and closes the listener. The filter stays on the thread.
func TryListener() unix.Errno {
	prog := sockFprog{1, &Instruction{Code: bpfReturn, K: ActAllow}}
	unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		FilterSpecAllow|unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	if errno == 0 {
		unix.Close(int(fd))
	}
	return errno
}
