package broker

import (
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// identity is what the kernel's checks see of a thread, and what the other side
// of a connection is told (SO_PEERCRED, SO_PEERGROUPS): credentials(7),
// capabilities(7).
type identity struct {
	uid, gid     int // effective
	fsuid, fsgid int // for files
	groups       []int
	capabilities uint64 // effective
}

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
	privileged := m.self.uid == 0 || m.self.capabilities != 0
	if privileged {
		st, err := c.from.status()
		if err != nil {
			return refused(unix.ESRCH)
		}
		who = st.identity
	}
	if !m.queue.valid(c.id) {
		return refused(unix.EINTR) // nobody hears it
	}
	if !privileged {
		return f()
	}
	who.capabilities &= m.policy.Capabilities
	runtime.LockOSThread()
	a := refused(unix.EACCES)
	if who.take() {
		a = f()
	}
	if !m.self.take() {
		// The thread stays locked, and ends with the goroutine.
		m.finish(errIdentity)
		return a
	}
	runtime.UnlockOSThread()
	return a
}

// take gives this thread the identity, but none with other ids for files. Its permitted
// capabilities and the real ids stay, by which it is changed back. The functions of
// package syscall would change all threads.
func (i *identity) take() bool {
	return i.gid >= 0 && i.uid == i.fsuid && i.gid == i.fsgid && setCapabilities(^uint64(0)) && setGroups(i.groups) &&
		setID(unix.SYS_GETEGID, unix.SYS_SETRESGID, i.gid) && setID(unix.SYS_GETEUID, unix.SYS_SETRESUID, i.uid) &&
		setCapabilities(i.capabilities)
}

// setID sets the effective id of this thread, and with it the one for files. One that it
// has is left: not every id can be set.
func setID(get, set uintptr, id int) bool {
	if now, _, _ := unix.RawSyscall(get, 0, 0, 0); int(now) == id {
		return true
	}
	keep := ^uintptr(0)
	_, _, errno := unix.RawSyscall(set, keep, uintptr(id), keep)
	return errno == 0
}

func setGroups(groups []int) bool {
	now, err := os.Getgroups()
	return err == nil && slices.Equal(now, groups) || unix.Setgroups(groups) == nil // of this thread, as x/sys has it
}

// setCapabilities sets the effective ones of this thread, as far as they are permitted.
func setCapabilities(effective uint64) bool {
	head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if unix.Capget(&head, &data[0]) != nil {
		return false
	}
	for n := range data {
		data[n].Effective = uint32(effective>>(32*n)) & data[n].Permitted
	}
	return unix.Capset(&head, &data[0]) == nil
}
