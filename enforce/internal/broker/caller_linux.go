package broker

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// caller is the thread that made a mediated call. What is looked up by its
// number may be about another thread that got the number later, until
// queue.valid says otherwise.
type caller struct{ tid int }

// socket is a socket of the command: a copy of its descriptor, which means the
// same socket whatever the command does to its own.
type socket struct {
	fd     int
	domain int // AF_*
}

// socket fetches the socket that is the call's first argument
// (pidfd_getfd(2)).
func (c *Call) socket() (socket, unix.Errno) {
	fd, errno := c.from.descriptor(int(int32(c.args[0])))
	if errno != 0 {
		return socket{}, errno
	}
	c.held = append(c.held, fd)
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	return socket{fd, domain}, asErrno(err)
}

// descriptor copies a descriptor of the caller, or of its process where the
// kernel can't tell threads apart (PIDFD_THREAD came with Linux 6.9). A thread
// with descriptors of its own is then taken for the process's first thread:
// what is fetched is what is checked and connected, so that this fools nobody
// but itself. The error is EBADF or EACCES.
func (c caller) descriptor(fd int) (int, unix.Errno) {
	const pidfdThread = unix.O_EXCL
	pidfd, err := unix.PidfdOpen(c.tid, pidfdThread)
	if err != nil {
		var errno unix.Errno
		if _, pidfd, errno = openProcess(c.tid); errno != 0 {
			return -1, unix.EACCES
		}
	}
	defer unix.Close(pidfd)
	got, err := unix.PidfdGetfd(pidfd, fd, 0)
	if err != nil && err != unix.EBADF {
		err = unix.EACCES
	}
	return got, asErrno(err)
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

// status is what proc_pid_status(5) tells of a process or thread.
type status struct {
	process                   int // the thread group
	uid, suid                 int // real, saved; identity has the effective one
	identity                  identity
	pending, blocked, ignored uint64 // signals
}

func (c caller) status() (status, error) {
	fields, err := procfs.StatusOf(procfs.Path(c.tid, "status")) // every connection waits for it where zsbx runs as root
	if err != nil {
		return status{}, err
	}
	s, ok := parseStatus(fields)
	if !ok {
		return status{}, unix.ESRCH
	}
	return s, nil
}

// ProcessOf is the number of the process that has a thread, 0 if it can't be told.
func ProcessOf(tid int) int {
	st, _ := caller{tid}.status()
	return max(0, st.process)
}

// parseStatus is ok if it says who the process is. What is missing is -1.
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
	s = status{process: number("Tgid", 0), uid: number("Uid", 0), suid: number("Uid", 2),
		pending: set("SigPnd") | set("ShdPnd"), blocked: set("SigBlk"), ignored: set("SigIgn")}
	who := &s.identity
	who.uid, who.fsuid, who.gid, who.fsgid = number("Uid", 1), number("Uid", 3), number("Gid", 1), number("Gid", 3)
	who.capabilities = set("CapEff")
	for i := range fields["Groups"] {
		who.groups = append(who.groups, number("Groups", i))
	}
	return s, min(s.uid, who.uid, s.suid, who.fsuid) >= 0
}

// signalled reports whether a signal waits for the caller, which would have
// interrupted its call.
func (c caller) signalled() bool {
	s, err := c.status()
	return err == nil && s.pending&^s.blocked&^s.ignored != 0
}

// maySignal is the kernel's rule (kill(2)), but for SIGCONT within one session of terminals.
func (s *status) maySignal(to *status) bool {
	who := s.identity.uid
	return s.identity.capabilities&(1<<unix.CAP_KILL) != 0 || who == to.suid || who == to.uid || s.uid == to.suid || s.uid == to.uid
}
