package broker

import (
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// caller is the thread that made a call that the filter hands over. What was looked up by the
// thread's number may be about a later thread with that number, unless queue.valid returns true
// afterwards.
type caller struct {
	tid     int
	process int // its process, if that is known already; see socket
}

// socket is a copy of a socket descriptor of the command. It stays the same socket whatever the
// command does to its own descriptor.
type socket struct {
	fd     int
	domain int // AF_*
}

// internet reports whether it is an internet socket.
func (s socket) internet() bool { return s.domain == unix.AF_INET || s.domain == unix.AF_INET6 }

// tcp reports whether it is a TCP socket.
func (s socket) tcp() bool {
	protocol, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return err == nil && s.internet() && protocol == unix.IPPROTO_TCP
}

// socket fetches the socket that is the call's first argument
// (pidfd_getfd(2)). With a network by name it notes the caller's process: the thread may have ended when a message
// about the connection names it.
func (c *Call) socket() (socket, unix.Errno) {
	pidfd, errno := c.from.open()
	if errno != 0 {
		return socket{}, errno
	}
	defer unix.Close(pidfd)
	if c.broker.door.net != nil {
		c.from.process = processBehind(pidfd)
	}
	fd, errno := copyOf(pidfd, int(int32(c.args[0])))
	if errno != 0 {
		return socket{}, errno
	}
	c.descriptors = append(c.descriptors, fd)
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	return socket{fd, domain}, asErrno(err)
}

// descriptor copies a descriptor of the caller. The error is EBADF or EACCES.
func (c caller) descriptor(fd int) (int, unix.Errno) {
	pidfd, errno := c.open()
	if errno != 0 {
		return -1, errno
	}
	defer unix.Close(pidfd)
	return copyOf(pidfd, fd)
}

// open returns a pidfd of the caller. Before Linux 6.9 there is no PIDFD_THREAD, and what is copied by it
// is a descriptor of the process's first thread. A thread that does not share its descriptors can
// only fool itself by that, since the broker checks and connects the very copy that it fetched.
func (c caller) open() (int, unix.Errno) {
	const pidfdThread = unix.O_EXCL
	pidfd, err := unix.PidfdOpen(c.tid, pidfdThread)
	if err != nil {
		var errno unix.Errno
		_, pidfd, errno = openProcess(c.tid)
		if errno != 0 {
			return -1, unix.EACCES
		}
	}
	return pidfd, 0
}

// copyOf copies a descriptor of a process.
func copyOf(pidfd, fd int) (int, unix.Errno) {
	got, err := unix.PidfdGetfd(pidfd, fd, 0)
	if err != nil && err != unix.EBADF {
		err = unix.EACCES
	}
	return got, asErrno(err)
}

// processBehind returns the number of the process that a pidfd is of. Before Linux 6.13 it is 0.
func processBehind(pidfd int) int {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_PID}
	err := unix.IoctlPidfdInfo(pidfd, &info)
	if err != nil {
		return 0
	}
	return int(info.Tgid)
}

// read reads the caller's memory, once.
func (c caller) read(at uint64, buf []byte) unix.Errno {
	if len(buf) == 0 {
		return 0
	}
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(len(buf))
	n, err := unix.ProcessVMReadv(c.tid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(at), Len: len(buf)}}, 0)
	switch {
	case err == unix.EFAULT || err == nil && n != len(buf):
		return unix.EFAULT
	case err != nil:
		return unix.EACCES
	}
	return 0
}

// memory opens the caller's memory (proc_pid_mem(5)). It stays that of the same process, whoever
// gets the caller's number.
func (c *Call) memory() (fd int, _ unix.Errno) {
	fd, err := unix.Open(procfs.Path(c.from.tid, "mem"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, unix.EACCES
	}
	c.descriptors = append(c.descriptors, fd)
	return fd, 0
}

// status has fields of proc_pid_status(5) for a process or thread.
type status struct {
	process                   int // the thread group
	uid, suid                 int // real and saved; the effective one is in identity
	identity                  identity
	pending, blocked, ignored uint64 // signals
}

func (c caller) status() (status, error) {
	fields, err := procfs.StatusOf(procfs.Path(c.tid, "status")) // must be fast: as root every connection waits for it
	if err != nil {
		return status{}, err
	}
	s, ok := parseStatus(fields)
	if !ok {
		return status{}, unix.ESRCH
	}
	return s, nil
}

// ProcessOf returns the number of a thread's process, or 0 if that is unknown.
func ProcessOf(tid int) int {
	st, _ := caller{tid: tid}.status()
	return max(0, st.process)
}

// parseStatus returns ok if the user ids are there. Missing numbers are -1.
func parseStatus(fields map[string][]string) (s status, ok bool) {
	number := func(key string, i int) int {
		if f := fields[key]; i < len(f) {
			if n, err := strconv.Atoi(f[i]); err == nil {
				return n
			}
		}
		return -1
	}
	set := func(key string) (bits uint64) {
		for _, f := range fields[key] {
			bits, _ = strconv.ParseUint(f, 16, 64)
		}
		return bits
	}
	s = status{
		process: number("Tgid", 0),
		uid:     number("Uid", 0),
		suid:    number("Uid", 2),
		pending: set("SigPnd") | set("ShdPnd"),
		blocked: set("SigBlk"),
		ignored: set("SigIgn"),
	}
	who := &s.identity
	who.uid = number("Uid", 1)
	who.fsuid = number("Uid", 3)
	who.gid = number("Gid", 1)
	who.fsgid = number("Gid", 3)
	who.capabilities = set("CapEff")
	for i := range fields["Groups"] {
		who.groups = append(who.groups, number("Groups", i))
	}
	return s, min(s.uid, who.uid, s.suid, who.fsuid) >= 0
}

// signalled reports whether a pending signal would have interrupted the caller's call.
func (c caller) signalled() bool {
	s, err := c.status()
	return err == nil && s.pending&^s.blocked&^s.ignored != 0
}

// maySignal is the kernel's rule in kill(2), except for SIGCONT within one terminal session.
func (s *status) maySignal(to *status) bool {
	who := s.identity.uid
	if s.identity.capabilities&(1<<unix.CAP_KILL) != 0 {
		return true
	}
	return who == to.suid || who == to.uid || s.uid == to.suid || s.uid == to.uid
}

// identity is what the kernel checks of a thread, and what the peer of a connection can learn
// (SO_PEERCRED, SO_PEERGROUPS). See credentials(7) and capabilities(7).
type identity struct {
	uid, gid     int // effective
	fsuid, fsgid int // for files
	groups       []int
	capabilities uint64 // effective
}

// as runs f with the caller's user, groups and capabilities. They decide which peers the caller
// may connect to and what the peers see, so zsbx never lends the caller its identity.
// Capabilities outside the policy are dropped in any case. Without privileges the identity is the
// same, since the command can't have become another user. f must only make system calls.
//
// It first checks that the caller still waits: see valid.
func (b *Broker) as(c *Call, f func() answer) answer {
	var who identity
	privileged := b.identity.uid == 0 || b.identity.capabilities != 0
	if privileged {
		st, err := c.from.status()
		if err != nil {
			return refused(unix.ESRCH)
		}
		who = st.identity
	}
	if !b.queue.valid(c.id) {
		return refused(unix.EINTR) // nobody hears it
	}
	if !privileged {
		return f()
	}
	who.capabilities &= b.policy.Capabilities
	runtime.LockOSThread()
	a := refused(unix.EACCES)
	if who.take() {
		a = f()
	}
	if !b.identity.take() {
		// The thread stays locked, and ends with the goroutine.
		b.finish(errIdentity)
		return a
	}
	runtime.UnlockOSThread()
	return a
}

// take gives this thread the identity. It refuses one with different ids for files. The
// permitted capabilities and real ids stay, so that the change can be undone. Package syscall's
// functions would change all threads.
func (i *identity) take() bool {
	if i.gid < 0 || i.uid != i.fsuid || i.gid != i.fsgid {
		return false
	}
	return setCapabilities(^uint64(0)) &&
		setGroups(i.groups) &&
		setID(unix.SYS_GETEGID, unix.SYS_SETRESGID, i.gid) &&
		setID(unix.SYS_GETEUID, unix.SYS_SETRESUID, i.uid) &&
		setCapabilities(i.capabilities)
}

// setID sets this thread's effective id, and with it the one for files. It does nothing if the
// thread has the id, since not every id can be set.
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
	return err == nil && slices.Equal(now, groups) || unix.Setgroups(groups) == nil // in x/sys only for this thread
}

// setCapabilities sets this thread's effective capabilities, limited to the permitted ones.
func setCapabilities(effective uint64) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{}
	if unix.Capget(&head, &data[0]) != nil {
		return false
	}
	for n := range data {
		data[n].Effective = uint32(effective>>(32*n)) & data[n].Permitted
	}
	return unix.Capset(&head, &data[0]) == nil
}
