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

// TestKeeperSockets: a keeper hands over sockets of a network in which nothing else is. The
// command's network stays the caller's, and the keeper works after a request that makes no sense.
func TestKeeperSockets(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	far := os.NewFile(uintptr(pair[1]), "far")
	c := &Command{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Keeper: &Keeper{}, Sockets: far}
	if os.Getuid() != 0 {
		c.Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID
	}
	p, err := Start(c)
	far.Close()
	if err != nil {
		testkit.Lacks(t, testkit.UserNS, err.Error())
	}
	defer p.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	stream := SocketRequest{Family: unix.AF_INET, Kind: unix.SOCK_STREAM}
	fd, errno := askForSocket(t, pair[0], stream)
	if errno != 0 {
		testkit.Lacks(t, testkit.UserNS, errno.Error())
	}
	if err := unix.Connect(fd, to); err != unix.ECONNREFUSED {
		t.Errorf("a server outside: %v", err)
	}
	server, errno := askForSocket(t, pair[0], stream)
	if errno != 0 {
		t.Fatal(errno)
	}
	client, errno := askForSocket(t, pair[0], stream)
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
	if _, errno := askForSocket(t, pair[0], SocketRequest{Family: -1}); errno != unix.EAFNOSUPPORT {
		t.Errorf("no such family: %v", errno)
	}
	if err := unix.Sendto(pair[0], []byte("x"), unix.MSG_NOSIGNAL, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Read(pair[0], make([]byte, 1)); err != nil && err != unix.ECONNRESET {
		t.Error(err)
	}
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
