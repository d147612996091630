package attack_test

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stdinAnew tries to give an internet socket that is standard input another peer.
func stdinAnew(how string, port int) error {
	addr := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(port>>8 | port<<8), Addr: loop4}
	shut := func() error { return unix.Shutdown(0, unix.SHUT_RD) }
	leave := func() error { return connectRaw(0, make([]byte, 16)) } // AF_UNSPEC
	connect := func() error {
		return raw(unix.SYS_CONNECT, 0, uintptr(unsafe.Pointer(addr)), unix.SizeofSockaddrInet4)
	}
	write := func() error { _, err := unix.Write(0, fastData[:]); return err }
	switch how {
	case "fast-to":
		return then(shut, func() error { return fastSendto(0, addr) })
	case "fast-msg":
		return then(shut, func() error { return fastSendmsg(0, addr) })
	case "fast-mmsg":
		return then(shut, func() error { return fastSendmmsg(0, addr) })
	case "connect":
		return then(shut, connect, write)
	case "put-off":
		return then(shut, func() error { return unix.SetsockoptInt(0, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1) }, connect, write)
	case "listen":
		return then(shut, func() error { return unix.Listen(0, 8) })
	case "leave-connect":
		return then(leave, connect, write)
	case "leave-listen":
		return then(leave, func() error { return unix.Listen(0, 8) })
	case "leave-fast":
		return then(leave, func() error { return fastSendto(0, addr) })
	case "ulp":
		if err := unix.SetsockoptString(0, unix.IPPROTO_TCP, unix.TCP_ULP, "zsbx"); err != unix.ENOENT {
			return err
		}
		return nil
	case "write":
		return write()
	case "accept":
		fd, _, err := unix.Accept(0)
		if err == nil {
			_, err = unix.Write(fd, fastData[:])
		}
		return err
	}
	return fmt.Errorf("no way %q", how)
}
