package cmd

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	maps.Copy(hostsActs, map[string]func([]string) error{
		"fastopen": func(a []string) error { return actFastOpen(a[0]) },
		"mptcp":    func([]string) error { return actMPTCP() },
		"sockaddr": func(a []string) error { return actSockaddr(a[0], a[1]) },
		"again":    func(a []string) error { return actAgain(a[0] == "copy") },
		"datagram": actDatagram,
		"flip":     func(a []string) error { return actFlip(a[0]) },
		"swap":     func(a []string) error { return actSwap(a[0]) },
		"pass":     actPass,
		"given":    func([]string) error { return actGiven(3, 4) },
		"giver":    actGiver,
		"taker":    func(a []string) error { return actTaker(a[0]) },
		"stubborn": func([]string) error { return actStubborn() },
	})
}

// there is where what is not allowed is sent to.
var there = &unix.SockaddrInet4{Port: 80, Addr: [4]byte{198, 51, 100, 66}}

func tcpSocket() (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// actFastOpen connects and sends in one call.
func actFastOpen(how string) error {
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	switch how {
	case "sendto":
		err = unix.Sendto(fd, []byte("evil"), unix.MSG_FASTOPEN, there)
	case "sendmsg":
		_, err = unix.SendmsgN(fd, []byte("evil"), nil, there, unix.MSG_FASTOPEN)
	default:
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1), unix.Connect(fd, there))
		_, werr := unix.Write(fd, []byte("evil"))
		err = errors.Join(err, werr)
	}
	time.Sleep(200 * time.Millisecond)
	return err
}

// actMPTCP connects a socket of that kind.
func actMPTCP() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	if err != nil {
		return err
	}
	return unix.Connect(fd, there)
}

// actSockaddr connects to an IPv6 address whose structure has a length and a scope. The kernel takes one
// without the scope, too (RFC 2133).
func actSockaddr(length, scope string) error {
	size, err := strconv.Atoi(length)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(scope)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	to := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: 80 << 8, Scope_id: uint32(id)}
	to.Addr = netip.MustParseAddr("2001:db8::66").As16()
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to)), uintptr(size))
	if errno != 0 {
		return errno
	}
	_, err = unix.Write(fd, []byte("evil"))
	time.Sleep(100 * time.Millisecond)
	return err
}

// actAgain connects a socket to a server, ends that with AF_UNSPEC (connect(2)), and connects it to another
// one, perhaps by a copy of its descriptor.
func actAgain(copied bool) error {
	addrs, err := net.LookupHost("a.example")
	if err != nil {
		return err
	}
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Port: 80}
	for _, a := range addrs {
		if addr := netip.MustParseAddr(a); addr.Is4() {
			to.Addr = addr.As4()
		}
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	var none unix.RawSockaddr
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unix.SizeofSockaddrInet4)
	if errno != 0 {
		return errno
	}
	if copied {
		fd, err = unix.Dup(fd)
		if err != nil {
			return err
		}
	}
	if err := unix.Connect(fd, there); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("evil"))
	time.Sleep(100 * time.Millisecond)
	return err
}

// actDatagram sends a datagram in one way.
func actDatagram(a []string) error {
	addr, err := netip.ParseAddr(a[1])
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(a[2])
	if err != nil {
		return err
	}
	if a[0] == "mapped" {
		addr = netip.AddrFrom16(addr.As16())
	}
	var to unix.Sockaddr = &unix.SockaddrInet6{Port: port, Addr: addr.As16()}
	family := unix.AF_INET6
	if addr.Is4() {
		to = &unix.SockaddrInet4{Port: port, Addr: addr.As4()}
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer time.Sleep(100 * time.Millisecond)
	b := []byte("evil")
	switch a[0] {
	case "connected":
		if err := unix.Connect(fd, to); err != nil {
			return err
		}
		_, err = unix.Write(fd, b)
		return err
	case "device":
		if err := unix.BindToDevice(fd, "lo"); err != nil {
			return err
		}
	case "pktinfo":
		info := make([]byte, unix.CmsgSpace(unix.SizeofInet4Pktinfo))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&info[0]))
		h.Level = unix.IPPROTO_IP
		h.Type = unix.IP_PKTINFO
		h.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
		info[unix.CmsgLen(0)] = 1 // the loopback device
		return unix.Sendmsg(fd, b, info, to, 0)
	case "many":
		return sendMany(fd, b, to.(*unix.SockaddrInet4))
	}
	return unix.Sendto(fd, b, 0, to)
}

// sendMany sends a datagram by sendmmsg(2).
func sendMany(fd int, b []byte, to *unix.SockaddrInet4) error {
	raw := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(to.Port>>8 | to.Port<<8), Addr: to.Addr}
	part := unix.Iovec{Base: &b[0]}
	part.SetLen(len(b))
	var m struct {
		unix.Msghdr
		sent uint32
		_    uint32
	}
	m.Name = (*byte)(unsafe.Pointer(&raw))
	m.Namelen = unix.SizeofSockaddrInet4
	m.Iov = &part
	m.Iovlen = 1
	_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 1, 0, 0, 0)
	runtime.KeepAlive(b)
	if errno != 0 {
		return errno
	}
	return nil
}

// actFlip connects to an address in memory that another thread changes all the time.
func actFlip(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	addrs, err := net.LookupHost("four.example")
	if err != nil {
		return err
	}
	allowed := netip.MustParseAddr(addrs[0]).As4()
	raw := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 80 << 8, Addr: allowed}
	word := (*uint32)(unsafe.Pointer(&raw.Addr))
	values := [2]uint32{*(*uint32)(unsafe.Pointer(&allowed)), *(*uint32)(unsafe.Pointer(&there.Addr))}
	var over atomic.Bool
	defer over.Store(true)
	go func() {
		for i := 0; !over.Load(); i++ {
			atomic.StoreUint32(word, values[i%2])
		}
	}()
	made := 0
	began := time.Now()
	for i := 0; i < n || time.Since(began) < time.Second/2; i++ {
		fd, err := tcpSocket()
		if err != nil {
			return err
		}
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw)), unix.SizeofSockaddrInet4)
		if errno == 0 {
			made++
		}
		unix.Close(fd)
	}
	fmt.Println(made, "connections")
	return nil
}

// actSwap connects to both addresses by a descriptor that another thread makes other sockets all the
// time.
func actSwap(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	if _, err := net.LookupHost("four.example"); err != nil {
		return err
	}
	var kinds [3]atomic.Int64
	for i, k := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_STREAM | unix.SOCK_NONBLOCK} {
		one, err := unix.Socket(unix.AF_INET, k|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		kinds[i].Store(int64(one))
	}
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	var over atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; !over.Load(); i++ {
			_ = unix.Dup3(int(kinds[i%3].Load()), fd, unix.O_CLOEXEC)
		}
	})
	began := time.Now()
	for i := 0; i < n || time.Since(began) < time.Second/2; i++ {
		fresh, err := tcpSocket()
		if err != nil {
			return err
		}
		unix.Close(int(kinds[0].Swap(int64(fresh))))
		to := there
		if i%2 == 0 {
			to = &unix.SockaddrInet4{Port: 80, Addr: [4]byte{203, 0, 113, 80}}
		}
		_ = unix.Connect(fd, to)
	}
	over.Store(true)
	done.Wait()
	fmt.Println("swapped")
	return nil
}

// actPass starts a command with two sockets that have no peer yet, and that tries to use them.
func actPass(a []string) error {
	udp, tcp, err := givenSockets()
	if err != nil {
		return err
	}
	return startAct(a, []*os.File{udp, tcp}, "given")
}

// actGiver passes such sockets to whoever connects to a socket "giver" in the working directory, and
// starts a command that does.
func actGiver(a []string) error {
	udp, tcp, err := givenSockets()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	os.Remove(dir + "/giver")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/giver"})
	if err != nil {
		return err
	}
	go func() {
		c, err := l.AcceptUnix()
		if err == nil {
			_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(int(udp.Fd()), int(tcp.Fd())), nil)
		}
	}()
	return startAct(a, nil, "taker", dir+"/giver")
}

// givenSockets makes a UDP and a TCP socket.
func givenSockets() (udp, tcp *os.File, err error) {
	u, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	t, err := tcpSocket()
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(u), "udp"), os.NewFile(uintptr(t), "tcp"), nil
}

// startAct runs a command line to which an act is added.
func startAct(argv []string, files []*os.File, act ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv = append(argv, self, hostsAct)
	argv = append(argv, act...)
	c := exec.Command(argv[0], argv[1:]...)
	c.ExtraFiles = files
	c.Stdout = os.Stdout
	c.Stderr = os.Stderr
	return c.Run()
}

// actTaker gets sockets from actGiver and uses them.
func actTaker(path string) error {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path})
	if err != nil {
		return err
	}
	b := make([]byte, 64)
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), b)
	if err != nil {
		return err
	}
	all, err := unix.ParseSocketControlMessage(b[:n])
	if err != nil || len(all) == 0 {
		return errors.Join(err, errors.New("no sockets came"))
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil || len(fds) != 2 {
		return errors.Join(err, errors.New("no sockets came"))
	}
	return actGiven(fds[0], fds[1])
}

// actGiven uses sockets that another program has made.
func actGiven(udp, tcp int) error {
	sent := unix.Sendto(udp, []byte("evil"), 0, &unix.SockaddrInet4{Port: 9999, Addr: there.Addr})
	time.Sleep(100 * time.Millisecond)
	return errors.Join(sent, unix.Connect(tcp, there))
}

// actStubborn tries for a while whether anything is open.
func actStubborn() error {
	for end := time.Now().Add(2000 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.DialTimeout("tcp", "198.51.100.66:80", 100*time.Millisecond); err == nil {
			fmt.Fprint(c, "evil")
			c.Close()
		}
		_ = actDatagram([]string{"sendto", "198.51.100.66", "9999"})
	}
	return nil
}
