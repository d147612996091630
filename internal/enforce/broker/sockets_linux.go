package broker

import (
	"encoding/binary"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// sessionSockets are the session's listening Unix sockets. Those with a path are known by their
// files, see files_linux.go. Those with an abstract name, or whose file was moved, are known by
// their cookies. A name is the session's while all sockets that are bound to it are among them.
type sessionSockets struct {
	mu    sync.Mutex
	files map[host.FileID]pinned
	named map[[2]uint32]bool
	sweep int // the size at which closed sockets are taken out of named
}

const firstSweep = 1024

// name notes a socket by its cookie. When there are many, it first removes those that
// were closed.
func (o *sessionSockets) name(fd int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.named == nil {
		o.named = make(map[[2]uint32]bool)
		o.sweep = firstSweep
	}
	if len(o.named) >= o.sweep {
		living := make(map[[2]uint32]bool)
		err := boundSockets(fd, func(s *boundSocket) {
			if o.named[s.cookie] {
				living[s.cookie] = true
			}
		})
		if err == nil {
			o.named = living
		}
		o.sweep = max(firstSweep, 2*len(o.named))
	}
	o.named[cookie(fd)] = true
}

// owns reports whether an abstract name is the session's. Each kind of socket has its own names.
// If the kernel can't be asked, the name is not.
func (o *sessionSockets) owns(fd, kind int, name string) bool {
	return o.ownsAll(fd, func(s *boundSocket) bool { return int(s.kind) == kind && string(s.name) == name })
}

// ownsAll reports whether there are bound sockets of a description, all of them noted.
func (o *sessionSockets) ownsAll(fd int, are func(*boundSocket) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := false
	sessions := true
	err := boundSockets(fd, func(s *boundSocket) {
		if are(s) {
			found = true
			sessions = sessions && o.named[s.cookie]
		}
	})
	return found && sessions && err == nil
}

// listen notes a Unix socket that is about to listen. The kernel then continues the call, so
// that clients see the right process id. If another thread replaces the socket meanwhile, the
// new one is not noted. Where ports are limited, a replaced socket could take a port, so the
// broker itself makes the call.
func (b *Broker) listen(c *Call) answer {
	s, errno := c.socket()
	if b.leaves(s, errno) {
		return answer{proceed: true}
	}
	if errno != 0 {
		return refused(errno)
	}
	if !b.queue.valid(c.id) {
		return refused(unix.EINTR) // the socket may be another process's
	}
	backlog := int(int32(c.args[1]))
	listens := func() answer { return refused(asErrno(unix.Listen(s.fd, backlog))) }
	if b.own.has(s.fd) && s.internet() {
		return b.publish(s.fd, func() answer { return b.as(c, listens) })
	}
	address := socketName(s.fd)
	if s.domain == unix.AF_UNIX {
		path, name := unixAddress(address)
		if name != "" {
			b.sockets.name(s.fd)
		}
		if path != "" {
			if errno := b.findFile(c, s, path, backlog); errno != 0 {
				return refused(errno)
			}
		}
	} else if !b.policy.mayUse(address, b.policy.Net.BindTCP) {
		return refused(unix.EACCES) // also an unbound socket, which would get a port that the kernel chooses
	}
	if b.policy.Net.Mode != resolve.NetPorts && !b.door.shared {
		return answer{proceed: true}
	}
	return b.as(c, listens)
}

// socketName returns a socket's address, nil if unknown.
func socketName(fd int) []byte {
	buf := make([]byte, maxAddress)
	n := uint32(len(buf))
	_, _, errno := unix.Syscall(unix.SYS_GETSOCKNAME,
		uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&n)))
	if errno != 0 || n > uint32(len(buf)) {
		return nil
	}
	return buf[:n]
}

// What the kernel says about Unix sockets (sock_diag(7)).

// boundSocket is what the kernel reports of a socket that can be connected to.
type boundSocket struct {
	cookie [2]uint32 // unique until the machine restarts
	kind   uint8     // SOCK_*
	name   []byte    // the name in its address
	file   kernelFile
}

// kernelFile is what the kernel reports of the file that a socket is bound to.
type kernelFile struct {
	inode  uint32    // its low half
	device [2]uint32 // of the file system: major, minor
}

// diagRequest is struct nlmsghdr followed by struct unix_diag_req
// (linux/netlink.h, linux/unix_diag.h).
type diagRequest struct {
	length      uint32
	kind, flags uint16
	seq, pid    uint32

	family, protocol uint8
	_                uint16
	states, ino      uint32
	show             uint32
	cookie           [2]uint32
}

const (
	established = 1 // TCP_ESTABLISHED: an accepted socket has its listener's address
	attrName    = 0 // UNIX_DIAG_NAME
	attrFile    = 1 // UNIX_DIAG_VFS
)

// boundSockets calls a function with each Unix socket that has no peer. They are in this
// process's network namespace; if the given socket is in another, the error is EXDEV.
func boundSockets(of int, see func(*boundSocket)) error {
	r := diagRequest{kind: unix.SOCK_DIAG_BY_FAMILY, flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, family: unix.AF_UNIX,
		states: ^uint32(1 << established), show: 1<<attrName | 1<<attrFile}
	r.length = uint32(unsafe.Sizeof(r))
	var s boundSocket
	return askDiag(of, unsafe.Slice((*byte)(unsafe.Pointer(&r)), r.length), func(b []byte) {
		s.parse(b)
		see(&s)
	})
}

// askDiag sends a request, and calls a function with what the kernel tells of each socket. It tells
// of this process's network namespace; if the given socket, unless it is -1, is in another, the
// error is EXDEV.
func askDiag(of int, request []byte, see func([]byte)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if of >= 0 && netns(fd) != netns(of) {
		return unix.EXDEV
	}
	// The kernel answers while it takes the request. The time limit is for a kernel that does
	// not.
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	err = unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return err
	}
	for buf := make([]byte, 8<<10); ; {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return err
		}
		if done, err := parseDiag(buf[:n], see); done || err != nil {
			return err
		}
	}
}

// parseDiag reads the messages in one packet and reports whether they are the last.
func parseDiag(b []byte, see func([]byte)) (done bool, _ error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	for _, m := range messages {
		switch kind := m.Header.Type; {
		case kind == unix.NLMSG_DONE:
			return true, nil
		case kind == unix.NLMSG_ERROR && len(m.Data) >= 4:
			return true, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
		case kind == unix.SOCK_DIAG_BY_FAMILY && len(m.Data) >= 16:
			see(m.Data)
		}
	}
	return false, err
}

// parse reads struct unix_diag_msg and the attributes behind it.
func (s *boundSocket) parse(b []byte) {
	word := binary.NativeEndian.Uint32
	*s = boundSocket{kind: b[1], cookie: [2]uint32{word(b[8:]), word(b[12:])}}
	for b = b[16:]; len(b) >= 4; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return
		}
		switch attr := binary.NativeEndian.Uint16(b[2:]); {
		case attr == attrName:
			s.name = b[4:n]
		case attr == attrFile && n >= 12:
			dev := word(b[8:]) // the kernel's own form: 12 bits major, 20 bits minor
			s.file = kernelFile{word(b[4:]), [2]uint32{dev >> 20, dev & 0xfffff}}
		}
		b = b[min(len(b), (n+3)&^3):]
	}
}

// netns returns the cookie of a socket's network namespace, or 0 before Linux 5.14.
func netns(fd int) uint64 {
	n, _ := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return n
}

// cookie returns a socket's cookie, as boundSockets has it.
func cookie(fd int) [2]uint32 {
	n, _ := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	return [2]uint32{uint32(n), uint32(n >> 32)}
}
