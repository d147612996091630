package fork

import (
	"net"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// askForSocket asks a keeper for a socket. It returns -1 and an error number if there is none.
func askForSocket(t *testing.T, line int, r SocketRequest) (int, unix.Errno) {
	t.Helper()
	request := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	if err := unix.Sendto(line, request, unix.MSG_NOSIGNAL, nil); err != nil {
		t.Fatal(err)
	}
	var errno uint32
	control := make([]byte, unix.CmsgSpace(4))
	data := unsafe.Slice((*byte)(unsafe.Pointer(&errno)), 4)
	n, controls, _, _, err := unix.Recvmsg(line, data, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n != len(data) {
		t.Fatal(n, err)
	}
	msgs, err := unix.ParseSocketControlMessage(control[:controls])
	if err != nil || len(msgs) == 0 {
		return -1, unix.Errno(errno)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || errno != 0 {
		t.Fatal(errno, err)
	}
	return fds[0], 0
}

// startForSockets starts a command whose keeper makes sockets.
func startForSockets(t *testing.T, allLocal bool) (p *Process, line int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(pair[0]) })
	unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
	far := os.NewFile(uintptr(pair[1]), "far")
	c := &Command{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Keeper: &Keeper{}, Sockets: far, AllLocal: allLocal}
	if os.Getuid() != 0 {
		c.Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID
	}
	p, err = Start(c)
	far.Close()
	if err != nil {
		testkit.Lacks(t, testkit.UserNS, err.Error())
	}
	t.Cleanup(func() { p.Close() })
	return p, pair[0]
}

// endKept ends a command that a keeper has.
func endKept(t *testing.T, p *Process) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for {
		ev, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == Emptied {
			return
		}
	}
}

// sameHost reports whether two addresses differ by the port at most.
func sameHost(a, b unix.Sockaddr) bool {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Addr == b.(*unix.SockaddrInet4).Addr
	case *unix.SockaddrInet6:
		return a.Addr == b.(*unix.SockaddrInet6).Addr
	}
	return false
}

// TestKeeperAllLocal: a socket on a port gets what is sent to that port of any address. An ordinary address is
// there, and whoever asks for the machine's own by connecting to any gets it.
func TestKeeperAllLocal(t *testing.T) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		p, line := startForSockets(t, true)
		server, errno := askForSocket(t, line, SocketRequest{Family: int32(family), Kind: unix.SOCK_DGRAM, Port: 53})
		if errno != 0 {
			testkit.Lacks(t, testkit.UserNS, errno.Error())
		}
		client, errno := askForSocket(t, line, SocketRequest{Family: int32(family), Kind: unix.SOCK_DGRAM})
		if errno != 0 {
			t.Fatal(errno)
		}
		var to, host unix.Sockaddr = &unix.SockaddrInet4{Port: 53, Addr: [4]byte{8, 8, 8, 8}},
			&unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}}
		if family == unix.AF_INET6 {
			to = &unix.SockaddrInet6{Port: 53, Addr: [16]byte{0x20, 1, 15: 8}}
			host = &unix.SockaddrInet6{Addr: [16]byte{0x20, 1, 0x0d, 0xb8, 15: 1}}
		}
		if err := unix.Bind(client, host); err != nil {
			t.Errorf("family %d: an ordinary address: %v", family, err)
		}
		if err := unix.Sendto(client, []byte("question"), 0, to); err != nil {
			t.Errorf("family %d: %v", family, err)
		}
		unbound, errno := askForSocket(t, line, SocketRequest{Family: int32(family), Kind: unix.SOCK_DGRAM})
		if errno != 0 {
			t.Fatal(errno)
		}
		if err := unix.Connect(unbound, to); err != nil {
			t.Errorf("family %d: %v", family, err)
		}
		if name, err := unix.Getsockname(unbound); err != nil || !sameHost(name, host) {
			t.Errorf("family %d: the machine's own address is %v, %v", family, name, err)
		}
		buf := make([]byte, 16)
		n, _, err := unix.Recvfrom(server, buf, unix.MSG_DONTWAIT)
		if err != nil || string(buf[:n]) != "question" {
			t.Errorf("family %d: got %q, %v", family, buf[:max(n, 0)], err)
		}
		endKept(t, p)
	}
}

// TestKeeperSockets: a keeper hands over sockets of a network in which nothing else is. The
// command's network stays the caller's, and the keeper works after a request that makes no sense.
func TestKeeperSockets(t *testing.T) {
	p, line := startForSockets(t, false)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	stream := SocketRequest{Family: unix.AF_INET, Kind: unix.SOCK_STREAM}
	fd, errno := askForSocket(t, line, stream)
	if errno != 0 {
		testkit.Lacks(t, testkit.UserNS, errno.Error())
	}
	if err := unix.Connect(fd, to); err != unix.ECONNREFUSED {
		t.Errorf("a server outside: %v", err)
	}
	server, errno := askForSocket(t, line, stream)
	if errno != 0 {
		t.Fatal(errno)
	}
	client, errno := askForSocket(t, line, stream)
	if errno != 0 {
		t.Fatal(errno)
	}
	if err := unix.Bind(server, to); err != nil { // the port is another network's
		t.Error(err)
	}
	if err := unix.Listen(server, 1); err != nil {
		t.Error(err)
	}
	if err := unix.Connect(client, to); err != nil {
		t.Errorf("an own server: %v", err)
	}
	if _, errno := askForSocket(t, line, SocketRequest{Family: -1}); errno != unix.EAFNOSUPPORT {
		t.Errorf("no such family: %v", errno)
	}
	if err := unix.Sendto(line, []byte("x"), unix.MSG_NOSIGNAL, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Read(line, make([]byte, 1)); err != nil && err != unix.ECONNRESET {
		t.Error(err)
	}
	endKept(t, p)
}

// setNofile sets how many descriptors a process can have. If its user has more in flight, it can't
// send one (unix(7)).
func setNofile(t *testing.T, pid int, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit)
	limit.Cur = n
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeeperSocketsInFlight: a socket that can't be sent, since the user has too many descriptors in
// flight, fails its request, and not the later ones.
func TestKeeperSocketsInFlight(t *testing.T) {
	const many = 64
	stream := SocketRequest{Family: unix.AF_INET, Kind: unix.SOCK_STREAM}
	p, line := startForSockets(t, false)
	fd, errno := askForSocket(t, line, stream)
	if errno != 0 {
		testkit.Lacks(t, testkit.UserNS, errno.Error())
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	for range many + 1 {
		if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	setNofile(t, p.KeeperPid, many)
	_, errno = askForSocket(t, line, stream)
	if os.Getuid() != 0 && errno != unix.ETOOMANYREFS { // root may send more
		t.Errorf("too many in flight: %v", errno)
	}
	unix.Close(pair[1])
	if _, errno := askForSocket(t, line, stream); errno != 0 {
		t.Errorf("at last: %v", errno)
	}
	endKept(t, p)
}
