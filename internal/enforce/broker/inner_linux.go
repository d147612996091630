package broker

import (
	"cmp"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/fork"
)

// This file is how a socket of the session is connected to the relay.
//
// Only the broker connects the session's sockets to the relay's listeners, one call at a time, and it
// notes the address of each. All other connections that wait there are of programs outside, or of a
// socket that the command has connected in a way that is not known here: they get nothing.

// listener is one of the relay's. door.mu guards it.
type listener struct {
	fd      int
	addr    netip.AddrPort
	awaited map[netip.AddrPort]*meeting // by the address of the session's socket
}

// meeting is a connection of the session to the relay that is being made.
type meeting struct {
	of    int // the session's socket
	from  netip.AddrPort
	relay chan int // gets the relay's end, once it is there
}

// listens returns the relay's listener for a family of addresses. d.mu is locked.
func (b *Broker) listens(family int) (*listener, unix.Errno) {
	d := &b.door
	if d.closed {
		return nil, unix.EACCES
	}
	if l := d.inner[family]; l != nil {
		return l, 0
	}
	const kind = unix.SOCK_STREAM | unix.SOCK_NONBLOCK
	fd, errno := d.socket(fork.SocketRequest{Family: int32(family), Kind: kind})
	if errno != 0 {
		return nil, errno
	}
	var local unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if family == unix.AF_INET6 {
		local = &unix.SockaddrInet6{Addr: [16]byte{15: 1}}
	}
	err := unix.Bind(fd, local)
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	addr, ok := internetAddress(socketName(fd))
	if err == nil && !ok {
		err = unix.EADDRNOTAVAIL
	}
	if err != nil {
		unix.Close(fd)
		return nil, asErrno(err)
	}
	l := &listener{fd, addr, map[netip.AddrPort]*meeting{}}
	d.inner[family] = l
	if d.shared {
		go b.sweep(l)
	}
	return l, 0
}

// sweep resets the connections of programs outside to a listener, until serving is over.
func (b *Broker) sweep(l *listener) {
	for b.until([]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}, 0) {
		_ = b.door.sort(l)   // harmless: what is left is looked at again
		time.Sleep(maxPause) // it wakes for the session's connections, too
	}
}

// sort is listener.sort, for a door that is not locked.
func (d *door) sort(l *listener) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return unix.EINTR
	}
	return l.sort()
}

// sort accepts the connections that are there. It hands over those that are awaited, and resets all
// others. While both ends are established, no other connection has their addresses; one that has ended
// could have had them before. The error says why some may be left.
func (l *listener) sort() error {
	for range unix.SOMAXCONN {
		fd, from, err := unix.Accept4(l.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch err {
		case nil:
		case unix.EAGAIN:
			return nil
		case unix.EINTR, unix.ECONNABORTED:
			continue
		default:
			return err
		}
		peer := peerOf(from)
		m := l.awaited[peer]
		if m == nil || stateOf(m.of) != established || stateOf(fd) != established {
			reset(fd)
			continue
		}
		delete(l.awaited, peer)
		m.relay <- fd
	}
	return nil
}

// peerOf returns an address that accept(2) has returned.
func peerOf(from unix.Sockaddr) netip.AddrPort {
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// join connects the caller's socket to the relay, and passes the relay's end to serve. If that fails it
// closes what serve would have used. The relay's end can take a moment, on a busy machine or if the
// command keeps it from coming (IP_MINTTL, ip(7)): that delays nobody else.
func (w *waiter) join(to netip.AddrPort, serve func(net.Conn), unused ...*relay.Up) answer {
	b := w.broker
	l, m, a := w.meet(to)
	pass := func(fd int, err error) answer {
		var conn net.Conn
		if err == nil {
			conn, err = connection(fd)
		}
		if err != nil {
			closeAll(unused)
			return refused(asErrno(err))
		}
		go serve(conn)
		return a
	}
	if m == nil {
		closeAll(unused)
		return a
	}
	select {
	case fd := <-m.relay:
		return pass(fd, nil)
	default:
		return answer{later: func(*Call) answer { return pass(b.met(l, m)) }}
	}
}

// closeAll closes connections outside that nobody will use.
func closeAll(unused []*relay.Up) {
	for _, up := range unused {
		up.Close()
	}
}

// meet connects the caller's socket to one of the relay's listeners. If there is no connection, and none
// will be, the answer says why.
func (w *waiter) meet(to netip.AddrPort) (*listener, *meeting, answer) {
	b := w.broker
	family := unix.AF_INET
	if w.sock.domain == unix.AF_INET6 && !to.Addr().Is4() {
		family = unix.AF_INET6
	}
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	l, errno := b.listens(family)
	if errno != 0 {
		return nil, nil, refused(errno)
	}
	if netns(w.sock.fd) != netns(l.fd) {
		return nil, nil, refused(unix.EACCES) // it was passed to the command
	}
	_ = l.sort() // harmless: others' connections take room, and nothing else
	inner := *w
	inner.addr = socketAddress(w.sock.domain, l.addr)
	fresh := unconnected(w.sock.fd)
	if !b.queue.valid(w.id) {
		return nil, nil, refused(unix.EINTR) // the socket may be another process's
	}
	a := inner.try() // as this process: the relay does not ask who connects
	if !fresh || a.errno != 0 && a.errno != unix.EINPROGRESS && !a.deferred {
		return nil, nil, a // what the kernel says of an earlier connection
	}
	if a.deferred {
		a = answer{}
	}
	from, _ := internetAddress(socketName(w.sock.fd))
	m := &meeting{w.sock.fd, from, make(chan int, 1)}
	l.awaited[from] = m
	_ = l.sort() // harmless: see met
	return l, m, a
}

// met waits until the relay's end of a connection is there.
func (b *Broker) met(l *listener, m *meeting) (fd int, err error) {
	const soon = 2 * time.Second
	defer b.door.forget(l, m)
	defer b.deferred.Add(-1)
	if b.deferred.Add(1) > maxDeferred {
		return -1, unix.EAGAIN
	}
	for end := time.Now().Add(soon); ; {
		err = b.door.sort(l)
		select {
		case fd := <-m.relay:
			return fd, nil
		default:
		}
		if s := stateOf(m.of); s != established && s != connecting {
			return -1, unix.ECONNABORTED
		}
		if time.Now().After(end) {
			return -1, cmp.Or(err, error(unix.ETIMEDOUT))
		}
		if err != nil {
			time.Sleep(maxPause) // such as for a descriptor
		}
		if !b.until([]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}, maxPause) {
			return -1, unix.EINTR
		}
	}
}

// forget waits for a connection no more, and resets what has come meanwhile.
func (d *door) forget(l *listener, m *meeting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.awaited[m.from] == m {
		delete(l.awaited, m.from)
	}
	select {
	case fd := <-m.relay:
		reset(fd)
	default:
	}
}

// States of TCP sockets (linux/tcp_states.h); see also established.
const (
	connecting = 2 // TCP_SYN_SENT
	closed     = 7 // TCP_CLOSE
)

// unconnected reports whether a TCP socket has no connection, and none is being made.
func unconnected(fd int) bool { return stateOf(fd) == closed }

// stateOf returns the state of a TCP socket, 0 if unknown.
func stateOf(fd int) uint8 {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return info.State
}

// reset closes a connection so that the other end gets an error.
func reset(fd int) {
	unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	unix.Close(fd)
}

// connection makes a net.Conn of a descriptor, which it takes.
func connection(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	return net.FileConn(file)
}

// socketAddress returns an address for connect(2) on a socket of a family.
func socketAddress(family int, to netip.AddrPort) []byte {
	var b [unix.SizeofSockaddrInet6]byte
	binary.NativeEndian.PutUint16(b[:], uint16(family))
	b[2] = byte(to.Port() >> 8)
	b[3] = byte(to.Port())
	if family == unix.AF_INET {
		a := to.Addr().As4()
		copy(b[4:], a[:])
		return b[:unix.SizeofSockaddrInet4]
	}
	a := to.Addr().As16()
	copy(b[8:], a[:])
	return b[:]
}
