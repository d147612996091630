package broker

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
)

// A command without network has its own servers on localhost all the same. Its TCP and UDP sockets
// are in a network namespace that has a loopback device and nothing else. So nothing outside
// reaches them, and they reach nothing outside, whatever address a call finds in memory. The
// command itself stays in the machine's namespace, where its Unix sockets are.
//
// The keeper makes the namespace with the first socket, and every socket in it, since it has the
// capabilities for that. The broker passes the socket on to the caller.
//
// The broker makes bind(2), connect(2) and listen(2) on sockets of this namespace only. From ABI 4 on
// Landlock refuses the command itself bind(2) and connect(2) of TCP sockets. So a socket that a
// program outside passed to the command (SCM_RIGHTS, unix(7)) gets no peer.

// OwnNet is the session's network, as the process sees it that asks the keeper for sockets.
type OwnNet struct {
	mu     sync.Mutex    // one request at a time
	line   int           // to the keeper; -1 for none
	far    *os.File      // the keeper's end
	fault  string        // why there was no network for the last request, as a sentence for the user
	cookie atomic.Uint64 // of the namespace; 0 before the first socket
	names  atomic.Bool   // something in it has bound the port of name servers
}

var errSameNet = errors.New("a socket of the session's network is in this process's own")

// Open makes the line to the keeper of a command that will be started.
func (o *OwnNet) Open() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	const patience = 30 // seconds; making a namespace takes long while many are being removed
	unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience})
	o.line = pair[0]
	o.far = os.NewFile(uintptr(pair[1]), "sockets")
	return nil
}

// Attach gives the keeper its end of the line. With allLocal every address of the network is local.
func (o *OwnNet) Attach(c *fork.Command, allLocal bool) {
	c.AllLocal = allLocal
	c.Sockets = o.far
	c.Cleanup = append(c.Cleanup, func() { o.far.Close() })
}

// Close closes the line. No socket can be made any more.
func (o *OwnNet) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.line >= 0 {
		unix.Close(o.line)
		o.line = -1
	}
}

// ownSocket gives the caller a socket of the session's network.
func (b *Broker) ownSocket(c *Call) answer {
	if b.door.net != nil && int(c.args[1])&sockTypeMask == unix.SOCK_DGRAM {
		if errno := b.serveNames(); errno != 0 {
			b.tellNoNetwork()
			return refused(errno)
		}
	}
	fd, errno := b.own.Socket(fork.SocketRequest{
		Family:   int32(c.args[0]),
		Kind:     int32(c.args[1]),
		Protocol: int32(c.args[2]),
	})
	if errno != 0 {
		b.tellNoNetwork()
		return refused(errno)
	}
	c.descriptors = append(c.descriptors, fd)
	return b.queue.give(c.id, fd, int(c.args[1])&unix.SOCK_CLOEXEC)
}

// tellNoNetwork says why the command reaches nothing, each reason once.
func (b *Broker) tellNoNetwork() {
	b.own.mu.Lock()
	fault := b.own.fault
	b.own.mu.Unlock()
	if fault == "" || b.door.net == nil || b.Warn == nil {
		return
	}
	_, said := b.door.faults.LoadOrStore(fault, true)
	if !said {
		go b.Warn(fault)
	}
}

// Socket asks the keeper for a socket. If there can be no network for the session, all is as
// without one: EACCES. A failure of the line ends it, since a later answer could be another
// request's.
func (o *OwnNet) Socket(r fork.SocketRequest) (fd int, _ unix.Errno) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.line < 0 {
		return -1, unix.EACCES
	}
	fd, errno, err := o.ask(&r)
	if err == nil && errno == 0 {
		err = o.prove(fd)
		if err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		unix.Close(o.line)
		o.line = -1
		if !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) { // else the session ends with the keeper
			const text = "the command can reach no host any more: no sockets can be made in its session's network: "
			o.fault = text + err.Error()
		}
		return -1, unix.EACCES
	}
	if errno&fork.NoNetwork != 0 {
		return -1, o.without(errno &^ fork.NoNetwork)
	}
	o.fault = ""
	return fd, errno
}

// settle waits until the keeper has closed its copies of all sockets that it has made, of which the command
// may have closed its own. It closes each one before it takes the next request.
func (o *OwnNet) settle() {
	fd, errno := o.Socket(fork.SocketRequest{Family: unix.AF_INET, Kind: unix.SOCK_DGRAM})
	if errno == 0 {
		unix.Close(fd)
	}
}

// without notes why the network can't be made, and returns the error of socket(2). Unless something has run
// out it is never tried again: the keeper would make the namespace anew for each socket.
func (o *OwnNet) without(why unix.Errno) unix.Errno {
	const text = "its session's network can't be made: "
	if fork.ShortageOf(why) == nil {
		o.fault = "the command can reach no host: " + text + why.Error()
		unix.Close(o.line)
		o.line = -1
		return unix.EACCES
	}
	o.fault = "a socket of the command was refused, the next one is tried again: " + text + why.Error()
	if why == unix.ENOSPC { // no error of socket(2)
		return unix.EACCES
	}
	return why
}

// ask sends a request and waits for the answer.
func (o *OwnNet) ask(r *fork.SocketRequest) (fd int, errno unix.Errno, _ error) {
	request := unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	failed := patiently(func() unix.Errno {
		return fork.Retry(func() unix.Errno { return asErrno(unix.Sendto(o.line, request, unix.MSG_NOSIGNAL, nil)) })
	})
	if failed != 0 {
		return -1, 0, failed
	}
	var data [4]byte
	control := make([]byte, unix.CmsgSpace(4))
	var n, controls int
	failed = fork.Retry(func() unix.Errno {
		var err error
		n, controls, _, _, err = unix.Recvmsg(o.line, data[:], control, unix.MSG_CMSG_CLOEXEC)
		return asErrno(err)
	})
	if failed != 0 {
		return -1, 0, failed
	}
	if n != len(data) {
		return -1, 0, unix.EPIPE // the keeper is gone
	}
	errno = unix.Errno(binary.NativeEndian.Uint32(data[:]))
	if errno != 0 {
		return -1, errno, nil
	}
	fd = passed(control[:controls])
	if fd < 0 {
		errno = unix.EMFILE // this process can have no more descriptors
	}
	return fd, errno, nil
}

// passed returns the descriptor in a control message, or -1.
func passed(control []byte) int {
	msgs, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(msgs) != 1 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return -1
	}
	return fds[0]
}

// prove makes sure that a socket is in the session's network, and that this network is not the
// machine's. Before Linux 5.14 the kernel does not tell.
func (o *OwnNet) prove(fd int) error {
	is := netns(fd)
	machines := netns(o.line)
	if is == 0 || machines == 0 || is == machines {
		return errSameNet
	}
	o.cookie.CompareAndSwap(0, is)
	if !o.has(fd) {
		return errSameNet
	}
	return nil
}

// has reports whether a socket is one of the session's network.
func (o *OwnNet) has(fd int) bool {
	own := o.cookie.Load()
	return own != 0 && netns(fd) == own
}

// leaves reports whether a call is left to the kernel. It is if Landlock checks all sockets but those
// of the session's network, and the caller's socket is none of these: it is no internet socket, or it
// could not be fetched. errno says how that went; EACCES is for a program that can't be read (0711).
func (b *Broker) leaves(s socket, errno unix.Errno) bool {
	return !b.policy.Peers && (errno == unix.EACCES || errno == 0 && !s.internet())
}

// bind binds a socket of the session's network for the caller. For others than internet sockets
// the kernel continues the call: Landlock decides about paths, and from ABI 4 on it refuses the
// bind(2) of a TCP socket that another thread puts there meanwhile.
func (b *Broker) bind(c *Call) answer {
	s, errno := c.socket()
	if errno == unix.EACCES || errno == 0 && !s.internet() {
		return answer{proceed: true}
	}
	if errno != 0 {
		return refused(errno)
	}
	if !b.own.has(s.fd) {
		return refused(unix.EACCES)
	}
	length := int(int32(c.args[2]))
	if length < 0 || length > maxAddress {
		return refused(unix.EINVAL)
	}
	addr, errno := c.Memory(c.args[1], length)
	if errno != 0 {
		return refused(errno)
	}
	binds := func() answer {
		_, _, errno := unix.Syscall(unix.SYS_BIND,
			uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
		return refused(errno)
	}
	a := b.as(c, binds)
	if a.errno == unix.EADDRINUSE {
		b.own.settle()
		a = b.as(c, binds)
	}
	to, _ := internetAddress(addr)
	if a.errno == 0 && to.Port() == domain {
		b.own.names.Store(true)
	}
	return a
}

// authorizeOwn returns 0 if a socket of the session's network may be connected to the address.
// All addresses there are loopback. connect(2) to others is refused as without a network, and so is a name
// server of the machine, instead of by a kernel that has no route or finds nobody. What is no
// address is the kernel's to refuse.
func (w *waiter) authorizeOwn() unix.Errno {
	to, ok := internetAddress(w.addr)
	switch {
	case !ok || w.broker.door.net != nil: // see outside
		return 0
	case !isLocalhost(to.Addr()):
		return unix.EACCES
	case to.Port() == domain && !w.broker.own.names.Load():
		return unix.EACCES
	}
	return 0
}

// refusedOwn answers a connection that the session's network has refused, since nothing of the
// session listens there. A server outside may be allowed. If a program outside listens on that port
// of the machine's localhost and is not allowed, that is a refusal: EACCES.
func (w *waiter) refusedOwn() answer {
	to, ok := internetAddress(w.addr)
	outside := ok && !w.broker.door.opens(to.Port()) && isOutside(to)
	if ok && w.broker.door.net != nil && !w.broker.door.isInner(to) {
		ask, v := w.broker.door.net.Ask(to)
		if v.Allowed() && !w.broker.policy.Hosts.Observe || outside {
			return w.reach(to, ask, v)
		}
	}
	if outside {
		return refused(unix.EACCES)
	}
	return refused(unix.ECONNREFUSED)
}

// isOutside reports whether an address at which nothing of the session listens is one outside: a port of
// localhost on which a program outside listens, or any port of this machine's other addresses.
func isOutside(to netip.AddrPort) bool {
	if isLocalhost(to.Addr()) {
		return listensOutside(to.Port())
	}
	return isMachines(to.Addr())
}

// failed reports whether a socket has an error.
func failed(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd)}}
	n, _ := unix.Poll(p, 0)
	return n > 0 && p[0].Revents&unix.POLLERR != 0
}

// internetRequest is struct nlmsghdr followed by struct inet_diag_req_v2 (linux/inet_diag.h).
type internetRequest struct {
	length      uint32
	kind, flags uint16
	seq, pid    uint32

	family, protocol, more, _ uint8
	states                    uint32
	port                      [2]byte // of the socket, in network byte order
	_                         [46]byte
}

// listensOutside reports whether a program in this process's network namespace listens on a TCP
// port of a loopback address or of all addresses. It is not sure if the kernel can't be asked.
func listensOutside(port uint16) (found bool) {
	const listen = 10 // TCP_LISTEN
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		r := internetRequest{kind: unix.SOCK_DIAG_BY_FAMILY, flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP,
			family: family, protocol: unix.IPPROTO_TCP, states: 1 << listen}
		r.length = uint32(unsafe.Sizeof(r))
		binary.BigEndian.PutUint16(r.port[:], port)
		_ = askDiag(-1, unsafe.Slice((*byte)(unsafe.Pointer(&r)), r.length), func(b []byte) {
			found = found || listensLocally(b, port)
		}) // harmless: then the error is the one for an address where nobody listens
	}
	return found
}

// listensLocally reports whether struct inet_diag_msg is about a socket on the port that a
// loopback address reaches.
func listensLocally(b []byte, port uint16) bool {
	const source = 8
	if len(b) < source+16 || binary.BigEndian.Uint16(b[4:]) != port {
		return false
	}
	size := 4
	if b[0] == unix.AF_INET6 {
		size = 16
	}
	a, _ := netip.AddrFromSlice(b[source : source+size])
	a = a.Unmap()
	return isLocalhost(a)
}

// isLocalhost reports whether an address is one of localhost, or stands for one in connect(2).
func isLocalhost(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() }
