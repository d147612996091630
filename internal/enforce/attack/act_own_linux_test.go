package attack_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownActs use servers of the session's own, and try to reach others from there.
func ownActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"own-serve": func(a []string) error { return ownServe(a[0]) },
		"own-await": func(a []string) error { return ownAwait(a[0], a[1]) },
		"own-reach": func(a []string) error { return ownReach(a[0], num(a[1])) },
		"own-reuse": func(a []string) error { return ownReuse(a[0], a[1]) },
		"own-flip":  func(a []string) error { return ownFlip(num(a[0])) },
		"own-given": func(a []string) error { return ownGiven(a[0], a[1], num(a[2])) },
		"own-swap":  func(a []string) error { return ownSwap(a[0], num(a[1])) },
		"own-udp":   func(a []string) error { return ownUDP(a[0], num(a[1])) },
		"own-lo":    func(a []string) error { return ownDevice(a[0]) },
		"own-crowd": func([]string) error { return ownCrowd() },
	}
}

// errNotServed means that something other than what was sent arrived.
var errNotServed = errors.New("the server's answer is wrong")

// localhost spells the addresses of this machine that a server on any of its addresses has.
func localhost(how string, port int) unix.Sockaddr {
	four := func(a ...byte) unix.Sockaddr { return &unix.SockaddrInet4{Port: port, Addr: [4]byte(a)} }
	six := func(a [16]byte) unix.Sockaddr { return &unix.SockaddrInet6{Port: port, Addr: a} }
	switch how {
	case "127.0.0.1":
		return four(127, 0, 0, 1)
	case "127.0.0.2":
		return four(127, 0, 0, 2)
	case "0.0.0.0":
		return four(0, 0, 0, 0)
	case "::1":
		return six(loop6)
	case "::":
		return six([16]byte{})
	case "::ffff:127.0.0.1":
		return six(mapped)
	}
	return six([16]byte{10: 0xff, 11: 0xff}) // ::ffff:0.0.0.0
}

func familyOf(to unix.Sockaddr) int {
	if _, is := to.(*unix.SockaddrInet6); is {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// portOf returns the port that a socket has.
func portOf(fd int) (int, error) {
	a, err := unix.Getsockname(fd)
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port, err
	case *unix.SockaddrInet6:
		return a.Port, err
	}
	return 0, errors.Join(err, unix.EAFNOSUPPORT)
}

// ownListen listens on an address, with a port that the kernel chooses.
func ownListen(at unix.Sockaddr, kind int) (fd, port int, err error) {
	fd, err = unix.Socket(familyOf(at), kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	err = then(
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) },
		func() error { return unix.Bind(fd, at) })
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 8)
	}
	if err != nil {
		return fd, 0, err
	}
	port, err = portOf(fd)
	return fd, port, err
}

// ownServe serves in one way and asks the server from another socket.
func ownServe(how string) error {
	switch how {
	case "go":
		return serveGo()
	case "unbound":
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Listen(fd, 8); err != nil {
			return err
		}
		port, err := portOf(fd)
		return errors.Join(err, exchange(fd, localhost("127.0.0.1", port)))
	case "udp":
		return serveUDP()
	case "nonblocking":
		fd, port, err := ownListen(localhost("127.0.0.1", 0), unix.SOCK_STREAM)
		if err != nil {
			return err
		}
		return connectLater(fd, port)
	case "nobody":
		return connectToNobody()
	}
	at, from, _ := strings.Cut(how, " from ")
	fd, port, err := ownListen(localhost(at, 0), unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	return exchange(fd, localhost(from, port))
}

// connectToNobody connects to a port where nobody listens. A socket has the port: the kernel could give
// a free one to the socket that connects, which would connect to itself.
func connectToNobody() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, localhost("127.0.0.1", 0)); err != nil {
		return err
	}
	port, err := portOf(fd)
	if err != nil {
		return err
	}
	return connect(unix.AF_INET, 0, localhost("127.0.0.1", port))
}

// exchange connects to a listening socket's address, and sends a byte both ways. The peer's address
// is the client's.
func exchange(listener int, to unix.Sockaddr) error {
	c, err := unix.Socket(familyOf(to), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(c)
	if err := unix.Connect(c, to); err != nil {
		return err
	}
	s, peer, err := unix.Accept(listener)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	port, err := portOf(c)
	if err != nil || !strings.Contains(fmt.Sprint(peer), fmt.Sprint(port)) {
		return errors.Join(err, errNotServed)
	}
	return errors.Join(passByte(c, s), passByte(s, c))
}

func passByte(from, to int) error {
	if _, err := unix.Write(from, []byte("x")); err != nil {
		return err
	}
	b := make([]byte, 2)
	if n, err := unix.Read(to, b); err != nil || n != 1 {
		return errors.Join(err, errNotServed)
	}
	return nil
}

// connectLater connects without waiting, as event loops do.
func connectLater(listener, port int) error {
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(c, localhost("127.0.0.1", port)); err != nil && err != unix.EINPROGRESS {
		return err
	}
	p := []unix.PollFd{{Fd: int32(c), Events: unix.POLLOUT}}
	if n, err := unix.Poll(p, 5000); n != 1 || err != nil {
		return errors.Join(err, errNotServed)
	}
	s, _, err := unix.Accept(listener)
	if err != nil {
		return err
	}
	return passByte(c, s)
}

// serveGo serves with package net, which tries MPTCP first.
func serveGo() error {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	go func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			_, _ = c.Write([]byte("x"))
			c.Close()
		}
	}()
	c, err := l.Accept()
	if err != nil {
		return err
	}
	b := make([]byte, 2)
	if n, err := c.Read(b); n != 1 {
		return errors.Join(err, errNotServed)
	}
	return nil
}

// serveUDP sends datagrams to a server, with and without a connection.
func serveUDP() error {
	for _, at := range []string{"127.0.0.1", "::1", "0.0.0.0", "::"} {
		fd, port, err := ownListen(localhost(at, 0), unix.SOCK_DGRAM)
		if err != nil {
			return err
		}
		to := localhost(at, port)
		c, err := unix.Socket(familyOf(to), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Sendto(c, []byte("x"), 0, to); err != nil {
			return err
		}
		b := make([]byte, 2)
		if n, _, err := unix.Recvfrom(fd, b, 0); n != 1 {
			return errors.Join(err, errNotServed)
		}
		if err := unix.Connect(c, to); err != nil {
			return err
		}
		if err := passByte(c, fd); err != nil {
			return err
		}
	}
	return nil
}

// ownAwait listens on all addresses until the test has tried to connect.
func ownAwait(mine, yours string) error {
	var ports bytes.Buffer
	for _, at := range []string{"0.0.0.0", "::", "127.0.0.1", "::1"} {
		_, port, err := ownListen(localhost(at, 0), unix.SOCK_STREAM)
		if err != nil {
			return err
		}
		fmt.Fprintln(&ports, port)
	}
	if err := os.WriteFile(mine+".ports", ports.Bytes(), 0o666); err != nil {
		return err
	}
	return turn(mine, yours)
}

// ownReach connects to a port of a server outside, with a socket that does or does not block.
func ownReach(how string, port int) error {
	how, later := strings.CutSuffix(how, " later")
	to := localhost(how, port)
	if !later {
		return connect(familyOf(to), 0, to)
	}
	c, err := unix.Socket(familyOf(to), unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(c, to); err != nil && err != unix.EINPROGRESS {
		return err
	}
	p := []unix.PollFd{{Fd: int32(c), Events: unix.POLLOUT}}
	_, _ = unix.Poll(p, 5000)
	errno, err := unix.GetsockoptInt(c, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	return errnoOf(syscall.Errno(errno))
}

// ownReuse gives up a port, which a program outside then takes, and connects to it. Meanwhile a
// client has the address.
func ownReuse(mine, yours string) error {
	fd, port, err := ownListen(localhost("127.0.0.1", 0), unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	to := localhost("127.0.0.1", port)
	err = then(
		func() error { return connect(unix.AF_INET, 0, to) },
		func() error { return unix.Close(fd) },
		func() error { return os.WriteFile(mine+".ports", []byte(fmt.Sprint(port)), 0o666) },
		func() error { return turn(mine, yours) })
	if err != nil {
		return err
	}
	return connect(unix.AF_INET, 0, to)
}

const flips = 10000

// ownFlip connects while another thread changes the port in the address, from an own server's to
// that of one outside.
func ownFlip(outside int) error {
	runtime.GOMAXPROCS(4)
	fd, port, err := ownListen(localhost("127.0.0.1", 0), unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	if err := unix.Listen(fd, 4096); err != nil { // a full queue would cost a second each time
		return err
	}
	go drain(fd)
	to := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: loop4}
	at := (*[2]byte)(unsafe.Pointer(&to.Port))
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				binary.BigEndian.PutUint16(at[:], uint16([]int{port, outside}[i%2]))
			}
		}
	})
	own := 0
	for range flips {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = raw(unix.SYS_CONNECT, uintptr(c), uintptr(unsafe.Pointer(to)), unix.SizeofSockaddrInet4)
		if err == nil {
			own++
		}
		unix.SetsockoptLinger(c, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // no port stays in use
		unix.Close(c)
	}
	close(stop)
	done.Wait()
	if own == 0 {
		return errNotServed
	}
	return nil
}

// given gets a TCP socket from a program outside, through a socket that may be connected to.
func given(path string) (int, error) {
	c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(c, &unix.SockaddrUnix{Name: path}); err != nil {
		return -1, err
	}
	control := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(c, make([]byte, 1), control, 0)
	if err != nil {
		return -1, err
	}
	msgs, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(msgs) != 1 {
		return -1, errors.Join(err, errNotServed)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// ownGiven uses a socket of the machine's network.
func ownGiven(how, path string, port int) error {
	if how == "own" { // the session's network exists
		if err := ownServe("unbound"); err != nil {
			return err
		}
		how = "connect"
	}
	fd, err := given(path)
	if err != nil {
		return err
	}
	switch how {
	case "bind":
		return unix.Bind(fd, localhost("127.0.0.1", 0))
	case "listen":
		return unix.Listen(fd, 8)
	}
	return unix.Connect(fd, localhost("127.0.0.1", port))
}

// ownSwap connects while another thread puts a socket of the machine's network in the place of the
// session's.
func ownSwap(path string, port int) error {
	runtime.GOMAXPROCS(2)
	theirs, err := given(path)
	if err != nil {
		return err
	}
	own, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	at, err := unix.Dup(own)
	if err != nil {
		return err
	}
	race(func(i int) { _ = unix.Dup3([]int{own, theirs}[i%2], at, unix.O_CLOEXEC) },
		func() { _ = unix.Connect(at, localhost("127.0.0.1", port)) })
	return nil
}

// ownUDP sends a datagram to a port outside in one way.
func ownUDP(how string, port int) error {
	to := localhost("127.0.0.1", port)
	if strings.HasPrefix(how, "::") {
		to = localhost(how, port)
	}
	fd, err := unix.Socket(familyOf(to), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	info := unix.Inet4Pktinfo{Ifindex: 1, Spec_dst: loop4}
	switch how {
	case "connected":
		if err := unix.Connect(fd, to); err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte("x"))
		return err
	case "pktinfo":
		return unix.Sendmsg(fd, []byte("x"), unix.PktInfo4(&info), to, 0)
	case "device":
		return then(
			func() error { return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo") },
			func() error { return unix.Sendto(fd, []byte("x"), 0, to) })
	case "many":
		at := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(port>>8 | port<<8), Addr: loop4}
		return sendmmsg(fd, at, 0)
	}
	return unix.Sendto(fd, []byte("x"), 0, to)
}

// ownDevice sets the loopback device up, which it is already.
func ownDevice(how string) error {
	if how == "ioctl" {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		var request [40]byte // struct ifreq
		copy(request[:], "lo")
		binary.NativeEndian.PutUint16(request[16:], unix.IFF_UP)
		return raw(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	request := struct {
		unix.NlMsghdr
		unix.IfInfomsg
	}{
		unix.NlMsghdr{Len: 32, Type: unix.RTM_NEWLINK, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK},
		unix.IfInfomsg{Index: 1, Flags: unix.IFF_UP, Change: unix.IFF_UP},
	}
	err = unix.Sendto(fd, unsafe.Slice((*byte)(unsafe.Pointer(&request)), 32), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return err
	}
	answer := make([]byte, 512)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 {
		return errors.Join(err, errNotServed)
	}
	return errnoOf(syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[16:])))) // struct nlmsgerr
}

// ownCrowd makes and uses other sockets while more connections wait than zsbx lets wait, to a server
// that accepts none.
func ownCrowd() error {
	const many, soon = 300, 2 * time.Second
	full, port, err := ownListen(localhost("127.0.0.1", 0), unix.SOCK_STREAM)
	if err == nil {
		err = unix.Listen(full, 0)
	}
	if err != nil {
		return err
	}
	var refused atomic.Int32
	for range many {
		go func() {
			if connect(unix.AF_INET, 0, localhost("127.0.0.1", port)) == unix.EAGAIN {
				refused.Add(1)
			}
		}()
	}
	for end := time.Now().Add(soon); refused.Load() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return then(
		func() error { return ownServe("127.0.0.1 from 127.0.0.1") },
		func() error { return unix.Kill(os.Getpid(), 0) })
}
