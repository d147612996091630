package broker

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// identity is what the kernel's checks see of a thread, and what the other side
// of a connection is told (SO_PEERCRED, SO_PEERGROUPS): credentials(7),
// capabilities(7).
type identity struct {
	uid, gid       int // effective
	fsuid, fsgid   int // for files
	groups         []int
	capabilities   uint64    // effective
	permitted, inh [2]uint32 // of this process only
}

// ownIdentity is what the threads of this process are.
func ownIdentity() (identity, error) {
	st, err := caller{tid: unix.Gettid()}.status()
	if err != nil {
		return identity{}, fmt.Errorf("this process's own credentials: %w", err)
	}
	head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&head, &data[0]); err != nil {
		return identity{}, fmt.Errorf("capget(2): %w", err)
	}
	who := st.identity
	for i, d := range data {
		who.permitted[i], who.inh[i] = d.Permitted, d.Inheritable
	}
	return who, nil
}

// privileged reports whether a thread with this identity may more than any
// user's.
func (i *identity) privileged() bool { return i.uid == 0 || i.capabilities != 0 }

// as runs f with the user, the groups and the capabilities of a caller: whom it
// may connect to, and whom the other side sees, depends on them, and zsbx never
// lends its own. What the command can't have is left out in any case. Only a
// zsbx with privileges has to change for that; the command of any other can't
// have become another user. f must do nothing but make system calls.
//
// Before, it makes sure that all that was learned of the caller is the caller's:
// see valid.
func (m *Broker) as(c *Call, f func() answer) answer {
	var who identity
	if m.self.privileged() {
		st, err := c.from.status()
		if err != nil {
			return refused(unix.ESRCH)
		}
		who = st.identity
	}
	if !m.queue.valid(c.id) {
		return refused(unix.EINTR) // nobody hears it
	}
	if !m.self.privileged() {
		return f()
	}
	if who.uid < 0 || who.gid < 0 || who.fsuid < 0 || who.fsgid < 0 {
		return refused(unix.EACCES)
	}
	who.capabilities &= m.policy.Capabilities
	runtime.LockOSThread()
	a := refused(unix.EACCES)
	if m.self.become(&who) {
		a = f()
	}
	if !m.self.again(&who) {
		// The thread stays locked, and ends with the goroutine.
		m.finish(errIdentity)
		return a
	}
	runtime.UnlockOSThread()
	return a
}

// become makes this thread, which is i, who. The functions of package syscall
// would change all threads. The user comes last: whoever is not root can change
// nothing else.
func (i *identity) become(who *identity) bool {
	return (slices.Equal(i.groups, who.groups) || setGroups(who.groups)) &&
		(i.gid == who.gid || setThread(unix.SYS_SETRESGID, who.gid)) &&
		(who.gid == who.fsgid || setFile(unix.SYS_SETFSGID, who.fsgid)) &&
		(i.uid == who.uid || setThread(unix.SYS_SETRESUID, who.uid)) &&
		(who.uid == who.fsuid || setFile(unix.SYS_SETFSUID, who.fsuid)) &&
		i.setCapabilities(who.capabilities)
}

// again makes this thread i, after it was who or became that in part. The ids for files
// follow the effective ones. What was not changed is left: not every id can be set.
func (i *identity) again(who *identity) bool {
	return (i.uid == who.uid && i.uid == who.fsuid || setThread(unix.SYS_SETRESUID, i.uid)) &&
		i.setCapabilities(i.capabilities) &&
		(i.gid == who.gid && i.gid == who.fsgid || setThread(unix.SYS_SETRESGID, i.gid)) &&
		(slices.Equal(i.groups, who.groups) || setGroups(i.groups))
}

// setThread sets the effective id of this thread alone, and with it the one for
// files.
func setThread(call uintptr, id int) bool {
	keep := ^uintptr(0)
	_, _, errno := unix.RawSyscall(call, keep, uintptr(id), keep)
	return errno == 0
}

// setFile sets the id for files. The call has no errors; it gives the id that
// was there before.
func setFile(call uintptr, id int) bool {
	unix.RawSyscall(call, uintptr(id), 0, 0)
	now, _, _ := unix.RawSyscall(call, ^uintptr(0), 0, 0)
	return int(now) == id
}

func setGroups(groups []int) bool {
	list := make([]uint32, len(groups)+1)
	for i, g := range groups {
		list[i] = uint32(g)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0])), 0)
	return errno == 0
}

// setCapabilities sets the effective ones of this thread. The permitted ones
// stay, for again.
func (i *identity) setCapabilities(effective uint64) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for n := range data {
		data[n] = unix.CapUserData{Effective: uint32(effective>>(32*n)) & i.permitted[n], Permitted: i.permitted[n], Inheritable: i.inh[n]}
	}
	return unix.Capset(&head, &data[0]) == nil
}
