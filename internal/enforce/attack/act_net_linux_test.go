package attack_test

import (
	"fmt"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// netActs use the network. A port argument is that of a listener on all of the machine's
// addresses.
func netActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"tcp4": func(a []string) error {
			return connect(unix.AF_INET, 0, &unix.SockaddrInet4{Port: num(a[0]), Addr: loop4})
		},
		"tcp4-6": func(a []string) error {
			return connect(unix.AF_INET, unix.IPPROTO_TCP, &unix.SockaddrInet4{Port: num(a[0]), Addr: loop4})
		},
		"tcp6": func(a []string) error {
			return connect(unix.AF_INET6, 0, &unix.SockaddrInet6{Port: num(a[0]), Addr: loop6})
		},
		"mapped": func(a []string) error {
			return connect(unix.AF_INET6, 0, &unix.SockaddrInet6{Port: num(a[0]), Addr: mapped})
		},
		"mptcp": func(a []string) error {
			return connect(unix.AF_INET, unix.IPPROTO_MPTCP, &unix.SockaddrInet4{Port: num(a[0]), Addr: loop4})
		},
		"fast-to":   func(a []string) error { return fastOpen(num(a[0]), fastSendto) },
		"fast-msg":  func(a []string) error { return fastOpen(num(a[0]), fastSendmsg) },
		"fast-mmsg": func(a []string) error { return fastOpen(num(a[0]), fastSendmmsg) },
		"fast-conn": fastConnect,
		"udp4": func(a []string) error {
			return sendUDP(unix.AF_INET, &unix.SockaddrInet4{Port: num(a[0]), Addr: loop4})
		},
		"udp6": func(a []string) error {
			return sendUDP(unix.AF_INET6, &unix.SockaddrInet6{Port: num(a[0]), Addr: loop6})
		},
		"udp-all":  sendAll,
		"ask":      askNames,
		"bind-tcp": bindTCP,
		"listen":   autobind,
		"socket":   func(a []string) error { return socket(num(a[0]), num(a[1]), num(a[2])) },
		"pair":     socketPair,
		"ulp":      setULP,
		"unix-own": ownUnix,
		"unix": func(a []string) error {
			return connect(unix.AF_UNIX, 0, &unix.SockaddrUnix{Name: a[0]})
		},
		"netlink":  func([]string) error { _, err := net.Interfaces(); return err },
		"io_uring": func([]string) error { return raw(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(new([120]byte)))) },
	}
}

var (
	loop4  = [4]byte{127, 0, 0, 1}
	loop6  = [16]byte{15: 1}
	mapped = [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
)

func raw(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	return errnoOf(errno)
}

func socket(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// connect connects a stream and sends a byte over it.
func connect(family, proto int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("x"))
	return err
}

// fastOpen sends data on a socket that was never connected.
func fastOpen(port int, send func(fd int, addr *unix.RawSockaddrInet4) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return send(fd, &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(port>>8 | port<<8), Addr: loop4})
}

var fastData = [1]byte{'x'}

func fastSendto(fd int, addr *unix.RawSockaddrInet4) error {
	return raw(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&fastData)), 1, unix.MSG_FASTOPEN,
		uintptr(unsafe.Pointer(addr)), unix.SizeofSockaddrInet4)
}

func fastSendmsg(fd int, addr *unix.RawSockaddrInet4) error {
	iov := unix.Iovec{Base: &fastData[0], Len: 1}
	msg := unix.Msghdr{Name: (*byte)(unsafe.Pointer(addr)), Namelen: unix.SizeofSockaddrInet4, Iov: &iov, Iovlen: 1}
	return raw(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_FASTOPEN)
}

func fastSendmmsg(fd int, addr *unix.RawSockaddrInet4) error {
	return sendmmsg(fd, addr, unix.MSG_FASTOPEN)
}

func sendmmsg(fd int, addr *unix.RawSockaddrInet4, flags uintptr) error {
	iov := unix.Iovec{Base: &fastData[0], Len: 1}
	msg := struct {
		unix.Msghdr
		n uint32
	}{Msghdr: unix.Msghdr{Name: (*byte)(unsafe.Pointer(addr)), Namelen: unix.SizeofSockaddrInet4, Iov: &iov, Iovlen: 1}}
	return raw(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), 1, flags)
}

// fastConnect lets connect(2) delay the connection until the first write.
func fastConnect(a []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: num(a[0]), Addr: loop4}); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("x"))
	return err
}

func sendUDP(family int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), 0, to)
}

func bindTCP(a []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return then(
		func() error { return unix.Bind(fd, &unix.SockaddrInet4{Port: num(a[0]), Addr: loop4}) },
		func() error { return unix.Listen(fd, 1) })
}

// autobind listens without bind(2).
func autobind([]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Listen(fd, 1)
}

func socketPair([]string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fds[0], []byte("x"))
	return err
}

// setULP asks for a protocol above TCP that doesn't exist. If the kernel looks for it, it
// returns ENOENT.
func setULP([]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_ULP, "zsbx")
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// ownUnix connects to its own socket, by path and by abstract name.
func ownUnix(a []string) error {
	for _, name := range []string{a[0], fmt.Sprintf("@zsbx-own-%d", unix.Getpid())} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = then(
			func() error { return unix.Bind(fd, &unix.SockaddrUnix{Name: name}) },
			func() error { return unix.Listen(fd, 1) },
			func() error { return connect(unix.AF_UNIX, 0, &unix.SockaddrUnix{Name: name}) })
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}
