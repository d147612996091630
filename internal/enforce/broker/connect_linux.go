package broker

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// waiter is a connect(2) call that has no answer yet.
type waiter struct {
	*Call
	sock socket
	addr []byte // as the caller gave it, read once
	path *route // if the address is a path
	file int    // a descriptor of the inode that the path led to, or -1
}

// maxAddress is sizeof(struct sockaddr_storage). maxUnixAddress is sizeof(struct sockaddr_un).
const (
	maxAddress     = 128
	maxUnixAddress = 110
)

// connect connects the caller's socket for the caller. It never lets the kernel continue the
// call, because another thread could first change the address in memory or the socket behind
// the descriptor.
func (b *Broker) connect(c *Call) answer {
	s, errno := c.socket()
	if b.leaves(s, errno) {
		return answer{proceed: true}
	}
	if errno != 0 {
		return refused(errno)
	}
	length := int(int32(c.args[2]))
	if length < 0 || length > maxAddress || s.domain == unix.AF_UNIX && length > maxUnixAddress {
		return refused(unix.EINVAL)
	}
	w := &waiter{Call: c, sock: s, file: -1}
	w.addr, errno = c.Memory(c.args[1], length)
	if errno != 0 {
		return refused(errno)
	}
	if a, ok := b.ask(s, w.addr); ok {
		return a
	}
	if path, _ := unixAddress(w.addr); path != "" && s.domain == unix.AF_UNIX {
		r, errno := c.route(path)
		if errno != 0 {
			return refused(errno)
		}
		w.path = &r
	}
	if a, is := w.outside(); is {
		return a
	}
	if b.door.net != nil {
		setScope(w.addr)
	}
	a := w.attempt()
	if a.deferred {
		return w.waitApart()
	}
	return a
}

// waitApart waits without counting as busy, so that connections which wait, to a server that accepts
// nothing, keep no other call from its answer.
func (w *waiter) waitApart() answer {
	b := w.broker
	if b.deferred.Add(1) > maxDeferred {
		b.deferred.Add(-1)
		return refused(unix.EAGAIN)
	}
	b.busy.Add(-1)
	w.relieve()
	a := w.wait()
	b.busy.Add(1)
	b.deferred.Add(-1)
	return a
}

// maxPause is after how long a signal is noticed that interrupts a call.
const maxPause = 20 * time.Millisecond

// wait retries a call until it has an answer. For Unix sockets the pause doubles from minPause
// to maxPause. Internet sockets are polled. A pending signal is noticed after maxPause at the
// latest. Few calls at a time are tried again, since the command can make them block: see try.
func (w *waiter) wait() answer {
	const minPause = time.Millisecond
	late := unix.EINPROGRESS
	if w.sock.domain == unix.AF_UNIX {
		late = unix.EAGAIN
	}
	deadline := sendTimeout(w.sock.fd)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if w.sock.domain == unix.AF_UNIX {
			time.Sleep(pause)
		} else {
			w.broker.until([]unix.PollFd{{Fd: int32(w.sock.fd), Events: unix.POLLOUT}}, maxPause)
		}
		select {
		case w.broker.retrying <- struct{}{}:
			a := w.attempt()
			<-w.broker.retrying
			if !a.deferred {
				return a
			}
		case <-time.After(maxPause): // all others block
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

// sendTimeout returns what is ready once a socket's time to connect is over (SO_SNDTIMEO, socket(7)). It
// is nil if there is no limit.
func sendTimeout(fd int) <-chan time.Time {
	tv, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil || tv.Nano() <= 0 {
		return nil
	}
	return time.After(time.Duration(tv.Nano()))
}

// attempt checks and connects with the caller's identity. A path is checked only once, since
// the connection goes to the inode. An abstract name may have a new owner each time.
func (w *waiter) attempt() answer {
	a := w.broker.as(w.Call, func() answer {
		if w.file < 0 {
			if errno := w.authorize(); errno != 0 {
				return refused(errno)
			}
		}
		return w.try()
	})
	if a.errno == unix.ECONNREFUSED && w.broker.own.has(w.sock.fd) {
		return w.refusedOwn()
	}
	return a
}

// authorize returns 0 if the socket may be connected to the address. It goes by the socket's
// family, not by the one in the address.
func (w *waiter) authorize() unix.Errno {
	b := w.broker
	switch w.sock.domain {
	case unix.AF_UNIX:
		if w.path != nil {
			return w.authorizePath()
		}
		if _, name := unixAddress(w.addr); name != "" {
			return w.authorizeAbstract(name)
		}
		return 0 // the kernel refuses, or disconnects for AF_UNSPEC
	case unix.AF_INET, unix.AF_INET6:
		if b.own.has(w.sock.fd) {
			return w.authorizeOwn()
		}
		if !b.policy.mayConnect(w.addr) {
			return unix.EACCES
		}
		if b.policy.Net.Mode == resolve.NetPorts && !w.sock.tcp() {
			return unix.EACCES
		}
		return 0
	case unix.AF_NETLINK:
		// struct sockaddr_nl: family, padding, port, groups; port 0 is the kernel
		if len(w.addr) < unix.SizeofSockaddrNetlink || binary.NativeEndian.Uint64(w.addr[4:]) != 0 {
			return unix.EPERM // the kernel's error for other programs without CAP_NET_ADMIN
		}
		return 0
	}
	return unix.EACCES
}

// authorizePath decides by the inode that the path leads to now. The connection then goes to
// that inode, even if the path has changed.
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
	id := host.FileID{Dev: st.Dev, Ino: st.Ino}
	if !w.broker.policy.allows(fd, id) && !w.broker.sockets.hasFile(id) && !w.broker.moved(w.Call, w.sock, fd, &st) {
		kind, err := unix.GetsockoptInt(w.sock.fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if err == nil && listenerOn(fd, kind) == unix.ECONNREFUSED {
			return unix.ECONNREFUSED // left over from a program that is gone
		}
		return unix.EACCES
	}
	w.file = fd
	return 0
}

// allows reports whether a socket outside is allowed, itself or through a directory above it. With a
// network by name none is that resolves any name.
func (p *Policy) allows(fd int, id host.FileID) bool {
	if p.Hosts != nil && resolvesNames(id) {
		return false
	}
	var path string
	for i := range p.Net.Unix {
		s := &p.Net.Unix[i]
		if s.Mode.IsDir() && path == "" {
			path = fork.PathOf(fd)
		}
		if s.Mode.IsDir() && host.Within(path, s.Path) || !s.Mode.IsDir() && s.ID == id {
			return true
		}
	}
	return false
}

// authorizeAbstract checks that the name belongs to the session. A program outside would have to
// take over the name between this check and the connection.
//
// For other names the error is the one for a name that nobody has. X clients try the display's
// abstract name first, and only after this error its path, which may be allowed.
func (w *waiter) authorizeAbstract(name string) unix.Errno {
	kind, err := unix.GetsockoptInt(w.sock.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || !w.broker.sockets.owns(w.sock.fd, kind, name) {
		return unix.ECONNREFUSED
	}
	return 0
}

// try connects with O_NONBLOCK. It can block all the same: the command shares the socket, and
// another of its threads can clear the flag.
func (w *waiter) try() answer {
	flags, err := unix.FcntlInt(uintptr(w.sock.fd), unix.F_GETFL, 0)
	if err != nil {
		return refused(asErrno(err))
	}
	if flags&unix.O_NONBLOCK != 0 {
		errno := w.call()
		if errno == unix.EINPROGRESS && w.broker.own.has(w.sock.fd) && failed(w.sock.fd) {
			errno = w.call() // returns the error, which is known at once on a loopback device
		}
		return refused(errno)
	}
	// The command sees the flag during this call. No data can be transferred meanwhile.
	unix.FcntlInt(uintptr(w.sock.fd), unix.F_SETFL, flags|unix.O_NONBLOCK)
	defer unix.FcntlInt(uintptr(w.sock.fd), unix.F_SETFL, flags)
	errno := w.call()
	if errno == unix.EINPROGRESS {
		errno = w.call() // on the same machine it is connected by now
	}
	if w.sock.domain == unix.AF_UNIX {
		return answer{errno: errno, deferred: errno == unix.EAGAIN} // the queue of the other side is full
	}
	return answer{errno: errno, deferred: errno == unix.EINPROGRESS || errno == unix.EALREADY}
}

// call makes one connect(2). It replaces a path by the inode that the path led to.
func (w *waiter) call() unix.Errno {
	if w.file >= 0 {
		return connect(w.sock.fd, fileAddress(w.file))
	}
	return connect(w.sock.fd, w.addr)
}

// fileAddress returns the address of the socket whose file is open.
func fileAddress(fd int) []byte {
	addr := append([]byte{unix.AF_UNIX, 0}, "/proc/self/fd/"...)
	return append(strconv.AppendInt(addr, int64(fd), 10), 0)
}

func connect(fd int, addr []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT,
		uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return errno
}

// asErrno returns an error's number: 0 for nil, EACCES if the error has none.
func asErrno(err error) unix.Errno {
	if err == nil {
		return 0
	}
	errno := unix.EACCES
	errors.As(err, &errno)
	return errno
}
