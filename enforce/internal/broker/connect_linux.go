package broker

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// waiter is a call of connect(2), until it is answered.
type waiter struct {
	*Call
	sock socket
	addr []byte // as the caller gave it, read once
	path *route // where the address is a path
	file int    // the inode that it led to, or -1
}

// maxAddress is sizeof(struct sockaddr_storage), maxUnixAddress that of
// struct sockaddr_un.
const (
	maxAddress     = 128
	maxUnixAddress = 110
)

// connect makes a connect(2) on the caller's socket for it. The call is never
// left to the kernel: until it would run, another thread could have put
// another address into the memory, or another socket onto the descriptor.
func (m *Broker) connect(c *Call) answer {
	s, errno := c.socket()
	if errno != 0 {
		return refused(errno)
	}
	length := int(int32(c.args[2]))
	if length < 0 || length > maxAddress || s.domain == unix.AF_UNIX && length > maxUnixAddress {
		return refused(unix.EINVAL)
	}
	w := &waiter{Call: c, sock: s, file: -1}
	if w.addr, errno = c.Memory(c.args[1], length); errno != 0 {
		return refused(errno)
	}
	if a, ok := m.ask(s, w.addr); ok {
		return a
	}
	if path, _ := unixAddress(w.addr); path != "" && s.domain == unix.AF_UNIX {
		r, errno := c.route(path)
		if errno != 0 {
			return refused(errno)
		}
		w.path = &r
	}
	a := w.attempt()
	if a.deferred {
		c.relieve()
		a = w.wait()
	}
	return a
}

// wait tries a call again until it has an answer: after minPause, then twice that and so
// on up to maxPause; sockets of the internet say themselves when they are ready. A
// pending signal is noticed after maxPause at the latest.
func (w *waiter) wait() answer {
	const minPause, maxPause = time.Millisecond, 20 * time.Millisecond
	late := unix.EINPROGRESS
	if w.sock.domain == unix.AF_UNIX {
		late = unix.EAGAIN
	}
	var deadline <-chan time.Time
	if tv, err := unix.GetsockoptTimeval(w.sock.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err == nil && tv.Nano() > 0 {
		deadline = time.After(time.Duration(tv.Nano()))
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if w.sock.domain == unix.AF_UNIX {
			time.Sleep(pause)
		} else {
			unix.Poll([]unix.PollFd{{Fd: int32(w.sock.fd), Events: unix.POLLOUT}}, int(maxPause.Milliseconds()))
		}
		if a := w.attempt(); !a.deferred {
			return a
		}
		select {
		case <-w.broker.over:
			return refused(unix.EINTR)
		case <-deadline:
			return refused(late)
		default:
		}
		if w.from.signalled() {
			return refused(restart)
		}
	}
}

// attempt checks and connects, as the caller. A path is checked once, as it is
// the inode that is connected to; an abstract name may be another's by now.
func (w *waiter) attempt() answer {
	return w.broker.as(w.Call, func() answer {
		if w.file < 0 {
			if errno := w.authorize(); errno != 0 {
				return refused(errno)
			}
		}
		return w.try()
	})
}

// authorize reports whether the socket may be connected to the address, by what the
// socket is, and not by what the address says of it.
func (w *waiter) authorize() unix.Errno {
	m := w.broker
	switch w.sock.domain {
	case unix.AF_UNIX:
		if w.path != nil {
			return w.authorizePath()
		}
		if _, name := unixAddress(w.addr); name != "" {
			return w.authorizeAbstract(name)
		}
		return 0 // the kernel refuses it or, for AF_UNSPEC, disconnects
	case unix.AF_INET, unix.AF_INET6:
		if !m.policy.mayConnect(w.addr) {
			return unix.EACCES
		}
		if m.policy.Net.Mode == policy.NetPorts {
			if p, err := unix.GetsockoptInt(w.sock.fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || p != unix.IPPROTO_TCP {
				return unix.EACCES
			}
		}
		return 0
	case unix.AF_NETLINK:
		// struct sockaddr_nl: family, padding, port, groups; port 0 is the kernel
		if len(w.addr) < unix.SizeofSockaddrNetlink || binary.NativeEndian.Uint64(w.addr[4:]) != 0 {
			return unix.EPERM // as the kernel says of other programs to whoever lacks CAP_NET_ADMIN
		}
		return 0
	}
	return unix.EACCES
}

// authorizePath decides by the inode that the path leads to now. The connection is
// made to that very inode, whatever the path leads to by then.
func (w *waiter) authorizePath() unix.Errno {
	fd, errno := w.walk(*w.path)
	if errno != 0 {
		return errno
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return asErrno(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ECONNREFUSED
	}
	if !w.broker.policy.allows(fd, policy.FileID{Dev: st.Dev, Ino: st.Ino}) {
		file := kernelFile{uint32(st.Ino), [2]uint32{unix.Major(st.Dev), unix.Minor(st.Dev)}}
		here := func(s *boundSocket) bool { return s.file == file }
		any, own := w.broker.sockets.bound(w.sock.fd, here)
		// Some files show another device than their file system has (btrfs, overlayfs).
		if device, err := w.from.fileSystem(fd); !any && err == nil && device != file.device {
			file.device = device
			any, own = w.broker.sockets.bound(w.sock.fd, here)
		}
		switch {
		case !any:
			return unix.ECONNREFUSED // left over from a program that is gone
		case !own:
			return unix.EACCES
		}
	}
	w.file = fd
	return 0
}

// allows reports whether a socket outside is among the allowed ones, or below an
// allowed directory.
func (m *Policy) allows(fd int, id policy.FileID) bool {
	var path string
	for i := range m.Net.Unix {
		p := &m.Net.Unix[i]
		if p.Mode.IsDir() && path == "" {
			path = fork.PathOf(fd)
		}
		if p.ID == id || p.Mode.IsDir() && policy.Within(path, p.Path) {
			return true
		}
	}
	return false
}

// authorizeAbstract looks for the name among those of the session, for the kind of the
// socket that is to be connected: each kind has names of its own. Between this and
// the connection a program outside would have to take over the very name.
//
// Others get the answer that they would get if nobody had the name, as in a
// network namespace of the session's own: X clients try the display's abstract
// name first, and its path, which may be allowed, after this answer only.
func (w *waiter) authorizeAbstract(name string) unix.Errno {
	kind, err := unix.GetsockoptInt(w.sock.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	_, own := w.broker.sockets.bound(w.sock.fd, func(s *boundSocket) bool { return string(s.name) == name && int(s.kind) == kind })
	if err != nil || !own {
		return unix.ECONNREFUSED
	}
	return 0
}

// try connects, and means not to wait. The command can have it wait all the
// same: the flag that says otherwise belongs to the socket, which is the
// command's, and another thread can take it off.
func (w *waiter) try() answer {
	flags, err := unix.FcntlInt(uintptr(w.sock.fd), unix.F_GETFL, 0)
	if err != nil {
		return refused(asErrno(err))
	}
	if flags&unix.O_NONBLOCK != 0 {
		return refused(w.call())
	}
	// The command has the flag for as long as the call takes, in which no
	// data can be on its way.
	unix.FcntlInt(uintptr(w.sock.fd), unix.F_SETFL, flags|unix.O_NONBLOCK)
	defer unix.FcntlInt(uintptr(w.sock.fd), unix.F_SETFL, flags)
	errno := w.call()
	if errno == unix.EINPROGRESS {
		errno = w.call() // on the same machine it is there by now
	}
	if w.sock.domain == unix.AF_UNIX {
		return answer{errno: errno, deferred: errno == unix.EAGAIN} // the queue of the other side is full
	}
	return answer{errno: errno, deferred: errno == unix.EINPROGRESS || errno == unix.EALREADY}
}

// call is one connect(2). A path is replaced by the inode that it led to.
func (w *waiter) call() unix.Errno {
	addr := w.addr
	if w.file >= 0 {
		addr = []byte{unix.AF_UNIX, 0}
		addr = append(addr, "/proc/self/fd/"...)
		addr = append(strconv.AppendInt(addr, int64(w.file), 10), 0)
	}
	return connect(w.sock.fd, addr)
}

func connect(fd int, addr []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return errno
}

// asErrno is the number of an error, 0 for none.
func asErrno(err error) unix.Errno {
	if err == nil {
		return 0
	}
	errno := unix.EACCES
	errors.As(err, &errno)
	return errno
}
