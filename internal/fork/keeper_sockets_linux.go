package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is how the keeper makes internet sockets for the session, in a network namespace that
// has a loopback device and nothing else. Only the keeper is in it. It is made for the first
// socket, so that a command without sockets costs nothing.

// socketMem is what the keeper needs for that.
type socketMem struct {
	conn    int32 // where requests come from; -1 for none
	made    bool  // the keeper is in the namespace, or could not make it
	failed  int32 // why not, as a negative errno
	request SocketRequest
	device  deviceFlags

	// The answer. The caller sets its pointers before the fork.
	errno   uint32
	part    unix.Iovec
	control descriptorMessage
	answer  unix.Msghdr
}

// descriptorMessage is a control message with one descriptor (cmsg(3), unix(7)). The keeper writes
// to it without a conversion of pointers, which the race detector's builds check by memory that
// the keeper does not have.
type descriptorMessage struct {
	header unix.Cmsghdr
	fd     int32
	_      int32
}

// socketControl is the size of a control message with one descriptor.
const socketControl = 24

// deviceFlags is struct ifreq for ioctl(2) with SIOCSIFFLAGS (netdevice(7)).
type deviceFlags struct {
	name  [16]byte
	flags uint16
	_     [22]byte
}

// prepare sets what does not change. It runs in the caller.
func (s *socketMem) prepare(conn int) {
	s.conn = int32(conn)
	s.device = deviceFlags{name: [16]byte{'l', 'o'}, flags: unix.IFF_UP}
	s.part = unix.Iovec{Base: (*byte)(unsafe.Pointer(&s.errno)), Len: 4}
	s.control.header = unix.Cmsghdr{Level: unix.SOL_SOCKET, Type: unix.SCM_RIGHTS}
	s.control.header.SetLen(unix.CmsgLen(4))
	s.answer = unix.Msghdr{Iov: &s.part, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&s.control))}
}

// serveSockets answers one request.
//
//go:norace
func (m *keeperMem) serveSockets() {
	s := &m.sockets
	if s.conn < 0 || m.polls[2].Revents == 0 {
		return
	}
	r := call(unix.SYS_RECVFROM, uintptr(s.conn), uintptr(unsafe.Pointer(&s.request)), unsafe.Sizeof(s.request),
		unix.MSG_DONTWAIT, 0, 0)
	if r == -int(unix.EAGAIN) || r == -int(unix.EINTR) {
		return
	}
	if r != int(unsafe.Sizeof(s.request)) { // nobody asks any more
		call(unix.SYS_CLOSE, uintptr(s.conn), 0, 0, 0, 0, 0)
		s.conn = -1
		return
	}
	fd := s.socket()
	s.errno = 0
	s.answer.Controllen = socketControl
	if fd < 0 {
		s.errno = uint32(-fd)
		s.answer.Controllen = 0
	} else {
		s.control.fd = int32(fd)
	}
	call(unix.SYS_SENDMSG, uintptr(s.conn), uintptr(unsafe.Pointer(&s.answer)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0, 0)
	if fd >= 0 {
		call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	}
}

// socket makes the socket that was asked for. It returns a negative errno if that fails.
//
//go:norace
func (s *socketMem) socket() int {
	if !s.made {
		s.made = true
		s.failed = int32(s.enter())
	}
	if s.failed < 0 {
		return int(s.failed)
	}
	r := &s.request
	return call(unix.SYS_SOCKET, uintptr(r.Family), uintptr(r.Kind)|unix.SOCK_CLOEXEC, uintptr(r.Protocol), 0, 0, 0)
}

// enter makes the namespace and sets its loopback device up, which gives it 127.0.0.1 and ::1.
//
//go:norace
func (s *socketMem) enter() int {
	r := call(unix.SYS_UNSHARE, unix.CLONE_NEWNET, 0, 0, 0, 0, 0)
	if r < 0 {
		return r
	}
	fd := call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0, 0, 0, 0)
	if fd < 0 {
		return fd
	}
	r = call(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&s.device)), 0, 0, 0)
	call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	return r
}
