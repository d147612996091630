package broker

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel says about Unix sockets (sock_diag(7)).

// boundSocket is what the kernel says of one.
type boundSocket struct {
	Ino    uint32    // of the socket itself
	Cookie [2]uint32 // with Ino, one socket for as long as the machine runs
	ByPath bool      // it is bound by path
	kernelFile
}

// kernelFile is what the kernel says of the file that a socket is bound to.
type kernelFile struct {
	File   uint32    // the low half of the inode
	Device [2]uint32 // major, minor
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
	diagKind = 20 // SOCK_DIAG_BY_FAMILY
	showFile = 2  // UDIAG_SHOW_VFS
	attrFile = 1  // UNIX_DIAG_VFS
)

// findSocket asks for one socket by its inode. It is ENOENT or ESTALE when the
// socket is gone, and another error when the kernel can't be asked.
func findSocket(ino uint32, cookie [2]uint32) (found boundSocket, err error) {
	n := 0
	err = sockDiag(diagRequest{ino: ino, cookie: cookie, flags: unix.NLM_F_REQUEST}, func(s *boundSocket) { found = *s; n++ })
	if err == nil && n != 1 {
		err = unix.ENOENT
	}
	return found, err
}

// lives reports whether the socket is there still, bound as it was; gone, that it is
// certain not to be.
func (b *boundSocket) lives() (lives, gone bool) {
	now, err := findSocket(b.Ino, b.Cookie)
	return err == nil && now == *b, err == unix.ENOENT || err == unix.ESTALE
}

// anyBoundTo reports whether a socket is bound to an inode. When the kernel can't
// be asked it says yes.
func anyBoundTo(ino uint64) bool {
	n, err := countBound(func(s *boundSocket) bool { return s.File == uint32(ino) })
	return n > 0 || err != nil
}

// onlyOne reports whether no other socket is bound to what the kernel calls by the
// same numbers. When it can't be asked it says no.
func (b *boundSocket) onlyOne() bool {
	n, err := countBound(func(s *boundSocket) bool { return s.kernelFile == b.kernelFile })
	return n == 1 && err == nil
}

// countBound counts the sockets that are bound by path, of those that a function wants.
func countBound(wanted func(*boundSocket) bool) (n int, _ error) {
	err := sockDiag(diagRequest{states: ^uint32(0), flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP}, func(s *boundSocket) {
		if s.ByPath && wanted(s) {
			n++
		}
	})
	return n, err
}

// sockDiag asks the kernel, and has a function see each socket of the answer: of one packet,
// or of a list, which has an end.
func sockDiag(r diagRequest, see func(*boundSocket)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// The answer is there when the request was sent; the limit is for
	// kernels that are different.
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	r.length, r.kind, r.family, r.show = uint32(unsafe.Sizeof(r)), diagKind, unix.AF_UNIX, showFile
	if err := unix.Sendto(fd, unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for buf := make([]byte, 32<<10); ; {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return err
		}
		switch err = parseDiag(buf[:n], see); {
		case err == errDiagDone, err == nil && r.flags&unix.NLM_F_DUMP != unix.NLM_F_DUMP:
			return nil
		case err != nil:
			return err
		}
	}
}

// errDiagDone is the end of a list, which is no error.
const errDiagDone = unix.Errno(0xfff)

// parseDiag reads the messages of one packet.
func parseDiag(b []byte, see func(*boundSocket)) error {
	messages, err := syscall.ParseNetlinkMessage(b)
	for _, m := range messages {
		switch m.Header.Type {
		case unix.NLMSG_DONE:
			return errDiagDone
		case unix.NLMSG_ERROR:
			if len(m.Data) >= 4 && binary.NativeEndian.Uint32(m.Data) != 0 {
				return unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
			}
		case diagKind:
			if len(m.Data) >= 16 {
				s := parseDiagSocket(m.Data)
				see(&s)
			}
		}
	}
	return err
}

// parseDiagSocket reads struct unix_diag_msg and the attributes behind it.
func parseDiagSocket(b []byte) boundSocket {
	word := binary.NativeEndian.Uint32
	s := boundSocket{Ino: word(b[4:]), Cookie: [2]uint32{word(b[8:]), word(b[12:])}}
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
