package fork

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is how the keeper makes internet sockets for the session, in a network namespace that
// has a loopback device and nothing else. Only the keeper is in it. It is made for the first
// socket, so that a command without sockets costs nothing. With Command.AllLocal every address is
// one of this device (rtnetlink(7)), so that the caller can answer for all of them.

// socketMem is what the keeper needs for that.
type socketMem struct {
	conn    int32 // where requests come from; -1 for none
	made    bool  // the keeper is in the namespace
	request SocketRequest
	device  deviceFlags

	setting [4]netlinkRequest // for Command.AllLocal; those that are not used have no length
	result  netlinkResult
	address portAddress
	v6Only  int32 // 1

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

// netlinkRequest is struct nlmsghdr followed by struct rtmsg or struct ifaddrmsg, and attributes
// (netlink(7), rtnetlink(7)).
type netlinkRequest struct {
	header unix.NlMsghdr
	body   [40]byte
}

// netlinkResult is struct nlmsghdr followed by struct nlmsgerr.
type netlinkResult struct {
	header unix.NlMsghdr
	errno  int32 // negative
	_      [76]byte
}

// portAddress is struct sockaddr_in6. Its beginning is a struct sockaddr_in, if it has no address.
type portAddress struct {
	family uint16
	port   [2]byte // in network byte order
	_      [24]byte
}

// loopbackIndex is the number of the first device of each namespace.
const loopbackIndex = 1

// localRoute makes all addresses of a family local. What is sent to one of them comes from the device's ordinary
// address, so that getsockname(2) after connect(2) says that one. For IPv4 the kernel has to be told.
func localRoute(family uint8) netlinkRequest {
	const table, protocol, scope, kind = unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	body := []byte{family, 0, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0}
	body = attribute(body, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopbackIndex))
	if family == unix.AF_INET {
		body = attribute(body, unix.RTA_PREFSRC, HostAddress4.AsSlice())
	}
	return setting(unix.RTM_NEWROUTE, body)
}

// hostAddress gives the loopback device an address. Programs ask for no addresses of a family of
// which they see loopback addresses only (AI_ADDRCONFIG, getaddrinfo(3)).
func hostAddress(family uint8, address netip.Addr) netlinkRequest {
	body := []byte{family, uint8(address.BitLen()), unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE}
	body = binary.NativeEndian.AppendUint32(body, loopbackIndex)
	return setting(unix.RTM_NEWADDR, attribute(body, unix.IFA_LOCAL, address.AsSlice()))
}

// attribute appends an attribute to a message.
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(b, value...)
}

// setting returns a request that is answered with a netlinkResult.
func setting(kind uint16, body []byte) (r netlinkRequest) {
	r.header.Type = kind
	r.header.Flags = unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE
	r.header.Len = uint32(unix.SizeofNlMsghdr + copy(r.body[:], body))
	return r
}

// prepare sets what does not change. It runs in the caller.
func (s *socketMem) prepare(conn int, allLocal bool) {
	s.conn = int32(conn)
	s.v6Only = 1
	if allLocal {
		s.setting = [4]netlinkRequest{
			hostAddress(unix.AF_INET, HostAddress4),
			localRoute(unix.AF_INET),
			hostAddress(unix.AF_INET6, HostAddress6),
			localRoute(unix.AF_INET6),
		}
	}
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
	r = m.reply(fd)
	if fd >= 0 {
		call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	}
	if fd >= 0 && r < 0 { // the user may have too many descriptors in flight (unix(7))
		r = m.reply(r)
	}
	if r < 0 { // the caller must not wait for an answer that never comes
		call(unix.SYS_CLOSE, uintptr(s.conn), 0, 0, 0, 0, 0)
		s.conn = -1
	}
}

// reply answers with a descriptor, or with a negative errno. If the kernel lacks memory, it tries for a
// tenth of a second. It returns a negative errno if it could not answer.
//
//go:norace
func (m *keeperMem) reply(fd int) int {
	s := &m.sockets
	s.errno = 0
	s.answer.Controllen = socketControl
	s.control.fd = int32(fd)
	if fd < 0 {
		s.errno = uint32(-fd)
		s.answer.Controllen = 0
	}
	r := 0
	for tries := 0; tries < 100; tries++ {
		r = call(unix.SYS_SENDMSG, uintptr(s.conn), uintptr(unsafe.Pointer(&s.answer)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0, 0)
		if r != -int(unix.ENOBUFS) && r != -int(unix.ENOMEM) && r != -int(unix.EINTR) {
			return r
		}
		m.pause()
	}
	return r
}

// socket makes the socket that was asked for. It returns a negative errno if that fails. If it is the
// namespace that could not be made, perhaps only for want of memory or descriptors, NoNetwork is added to
// the errno, and the next request tries again.
//
//go:norace
func (s *socketMem) socket() int {
	if !s.made {
		err := s.enter()
		if err < 0 {
			return err - NoNetwork
		}
		s.made = true
	}
	r := &s.request
	fd := call(unix.SYS_SOCKET, uintptr(r.Family), uintptr(r.Kind)|unix.SOCK_CLOEXEC, uintptr(r.Protocol), 0, 0, 0)
	if fd < 0 || r.Port == 0 {
		return fd
	}
	err := s.bind(fd)
	if err < 0 {
		call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
		return err
	}
	return fd
}

// bind binds a socket to the port that was asked for.
//
//go:norace
func (s *socketMem) bind(fd int) int {
	r := &s.request
	size := uintptr(unix.SizeofSockaddrInet4)
	if r.Family == unix.AF_INET6 {
		size = unix.SizeofSockaddrInet6
		call(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_IPV6, unix.IPV6_V6ONLY,
			uintptr(unsafe.Pointer(&s.v6Only)), unsafe.Sizeof(s.v6Only), 0)
	}
	s.address.family = uint16(r.Family)
	s.address.port[0] = uint8(r.Port >> 8)
	s.address.port[1] = uint8(r.Port)
	return call(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&s.address)), size, 0, 0, 0)
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
	if r < 0 {
		return r
	}
	return s.set()
}

// set makes the settings of Command.AllLocal. Those for IPv6 fail on a kernel without it, which
// has no sockets for it either.
//
//go:norace
func (s *socketMem) set() int {
	if s.setting[0].header.Len == 0 {
		return 0
	}
	fd := call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE, 0, 0, 0)
	if fd < 0 {
		return fd
	}
	failed := 0
	for i := range s.setting {
		r := s.make(fd, &s.setting[i])
		if r < 0 && s.setting[i].body[0] == unix.AF_INET {
			failed = r
		}
	}
	call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	return failed
}

// make makes one setting. The kernel answers while it takes the request.
//
//go:norace
func (s *socketMem) make(fd int, q *netlinkRequest) int {
	r := call(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(q)), uintptr(q.header.Len), 0, 0, 0)
	if r < 0 {
		return r
	}
	r = call(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&s.result)), unsafe.Sizeof(s.result),
		unix.MSG_DONTWAIT, 0, 0)
	if r < 0 {
		return r
	}
	return int(s.result.errno)
}
