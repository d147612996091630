package broker

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diag asks the kernel about Unix sockets (sock_diag(7)).
type diag struct {
	mu sync.Mutex
	fd int // -1 before the first question
}

// boundSocket is what the kernel says of one.
type boundSocket struct {
	Ino     uint32    // of the socket itself
	Cookie  [2]uint32 // with Ino, one socket for as long as the machine runs
	ByPath  bool      // it is bound by path
	File    uint32    // the low half of the inode that it is bound to
	Device  [2]uint32 // of that inode: major, minor
	Listens bool
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
	diagKind    = 20 // SOCK_DIAG_BY_FAMILY
	showName    = 1  // UDIAG_SHOW_NAME
	showFile    = 2  // UDIAG_SHOW_VFS
	attrFile    = 1  // UNIX_DIAG_VFS
	stateListen = 10 // TCP_LISTEN, which stands for listening here too
)

// find asks for one socket by its inode. It is ENOENT or ESTALE when the
// socket is gone, and ENOENT, too, when the kernel can't be asked.
func (d *diag) find(ino uint32, cookie [2]uint32) (boundSocket, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ask(diagRequest{ino: ino, cookie: cookie, flags: unix.NLM_F_REQUEST}); err != nil {
		return boundSocket{}, err
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(d.fd, buf, 0)
	if err != nil {
		d.drop()
		return boundSocket{}, err
	}
	msgs, err := parseDiag(buf[:n])
	if err != nil || len(msgs) != 1 {
		return boundSocket{}, unix.ENOENT
	}
	return msgs[0], nil
}

// anyBoundTo reports whether a socket is bound to an inode. When the kernel can't
// be asked it says yes.
func (d *diag) anyBoundTo(ino uint64) bool {
	n, err := d.count(func(s *boundSocket) bool { return s.File == uint32(ino) })
	return n > 0 || err != nil
}

// onlyOne reports whether no other socket is bound to what the kernel calls by the
// same numbers. When it can't be asked it says no.
func (d *diag) onlyOne(b *boundSocket) bool {
	n, err := d.count(func(s *boundSocket) bool { return s.File == b.File && s.Device == b.Device })
	return n == 1 && err == nil
}

// count counts the sockets that are bound by path, of those that a function
// wants.
func (d *diag) count(wanted func(*boundSocket) bool) (n int, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ask(diagRequest{states: ^uint32(0), flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP}); err != nil {
		return 0, err
	}
	buf := make([]byte, 32<<10)
	for {
		got, _, err := unix.Recvfrom(d.fd, buf, 0)
		if err != nil {
			d.drop()
			return 0, err
		}
		socks, err := parseDiag(buf[:got])
		for i := range socks {
			if socks[i].ByPath && wanted(&socks[i]) {
				n++
			}
		}
		switch err {
		case nil:
		case errDiagDone:
			return n, nil
		default:
			return 0, err
		}
	}
}

// ask sends a question. d.mu is held.
func (d *diag) ask(r diagRequest) error {
	if d.fd < 0 {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err != nil {
			return err
		}
		// The answer is there when the request was sent; the limit is for
		// kernels that are different.
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
		d.fd = fd
	}
	r.length, r.kind, r.family = uint32(unsafe.Sizeof(r)), diagKind, unix.AF_UNIX
	r.show = showName | showFile
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	if err := unix.Sendto(d.fd, buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		d.drop()
		return err
	}
	return nil
}

func (d *diag) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop()
}

// drop closes the socket. d.mu is held.
func (d *diag) drop() {
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
	d.fd = -1
}

// errDiagDone is the end of a list, which is no error.
const errDiagDone = unix.Errno(0xfff)

// parseDiag reads the messages of one packet.
func parseDiag(b []byte) ([]boundSocket, error) {
	var out []boundSocket
	word := binary.NativeEndian.Uint32
	for len(b) >= unix.SizeofNlMsghdr {
		n := int(word(b))
		if n < unix.SizeofNlMsghdr || n > len(b) {
			return out, unix.EPROTO
		}
		switch body := b[unix.SizeofNlMsghdr:n]; binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return out, errDiagDone
		case unix.NLMSG_ERROR:
			if len(body) >= 4 && word(body) != 0 {
				return out, unix.Errno(-int32(word(body)))
			}
		case diagKind:
			if len(body) >= 16 {
				out = append(out, parseDiagSocket(body))
			}
		}
		b = b[min(len(b), (n+3)&^3):]
	}
	return out, nil
}

// parseDiagSocket reads struct unix_diag_msg and the attributes behind it.
func parseDiagSocket(b []byte) boundSocket {
	word := binary.NativeEndian.Uint32
	s := boundSocket{Ino: word(b[4:]), Cookie: [2]uint32{word(b[8:]), word(b[12:])}, Listens: b[2] == stateListen}
	for b = b[16:]; len(b) >= 4; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == attrFile && n >= 12 {
			dev := word(b[8:]) // the kernel's own form: 12 bits major, 20 bits minor
			s.File, s.Device, s.ByPath = word(b[4:]), [2]uint32{dev >> 20, dev & 0xfffff}, true
		}
		b = b[min(len(b), (n+3)&^3):]
	}
	return s
}
