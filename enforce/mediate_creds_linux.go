package enforce

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asCaller runs f with the user and the groups of the caller: who may connect
// to a socket, and whom its other side sees, depends on them. Only root has
// to change for that; the command of anybody else can't have become another
// user. f must do nothing but make system calls.
func asCaller(c caller, f func() answer) answer {
	if os.Geteuid() != 0 {
		return f()
	}
	st, err := c.status()
	if err != nil {
		return refused(unix.ESRCH)
	}
	if st.uid == 0 && st.gid == os.Getegid() {
		return f()
	}
	if st.uid < 0 || st.gid < 0 {
		return refused(unix.EACCES)
	}
	done := make(chan answer)
	go func() {
		// The thread ends with the goroutine if it can't be given back as
		// it was.
		runtime.LockOSThread()
		a, restored := changed(st, f)
		if restored {
			runtime.UnlockOSThread()
		}
		done <- a
	}()
	return <-done
}

// changed runs f on a thread with other credentials, and says whether the
// thread has its own again.
func changed(st status, f func() answer) (a answer, restored bool) {
	groups, err := os.Getgroups()
	if err != nil {
		return refused(unix.EACCES), true
	}
	a = refused(unix.EACCES)
	if setThread(st.groups, st.gid, st.uid, false) {
		a = f()
	}
	return a, setThread(groups, os.Getegid(), 0, true)
}

// setThread sets the groups and the effective ids of this thread alone: the
// functions of package syscall set those of all threads. To become root again
// the user comes first.
func setThread(groups []int, gid, uid int, root bool) bool {
	keep := ^uintptr(0)
	list := make([]uint32, len(groups)+1)
	for i, g := range groups {
		list[i] = uint32(g)
	}
	user := func() bool {
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep)
		return errno == 0
	}
	group := func() bool {
		_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0])), 0)
		if errno != 0 {
			return false
		}
		_, _, errno = unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(gid), keep)
		return errno == 0
	}
	if root {
		return user() && group()
	}
	return group() && user()
}
