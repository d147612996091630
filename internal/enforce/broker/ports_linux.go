package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
)

// A server of the session is in the session's network, where nobody outside reaches it. If the policy
// lets others connect to its port, the broker listens on that port outside, and passes on what comes.

// opened is a port that is open to others.
type opened struct {
	net.Listener
	only6   bool // for IPv6 only (IPV6_V6ONLY, ipv6(7))
	listens int  // how often a server of the session has begun to listen there
}

// publish makes a socket listen, and before that opens its port to others, if that is allowed. The port stays
// open until somebody connects to it, or another server needs it, and nothing of the session listens there.
func (b *Broker) publish(fd int, listens func() answer) answer {
	d := &b.door
	at, ok := internetAddress(socketName(fd))
	if d.net == nil || !ok || !resolve.Lists(b.policy.Net.BindTCP, at.Port()) {
		return listens()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return listens()
	}
	only6, _ := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY) // 0 for a socket of IPv4
	p, errno := b.open(at, only6 != 0)
	if errno != 0 {
		return refused(errno)
	}
	isNew := p.listens == 0
	a := listens()
	if a.errno == 0 {
		p.listens++
	}
	if isNew && a.errno == 0 {
		go b.admit(p, at)
	}
	if isNew && a.errno != 0 {
		d.drop(p, at)
	}
	return a
}

// open listens outside, unless that is done already. d.mu is locked.
func (b *Broker) open(at netip.AddrPort, only6 bool) (*opened, unix.Errno) {
	d := &b.door
	p := d.ports[at]
	if p != nil && p.only6 == only6 {
		return p, 0
	}
	if p != nil {
		d.drop(p, at) // the session has one server at an address: that one is gone
	}
	const most = 256 // a server may listen on each address of the loopback device
	if len(d.ports) >= most {
		return nil, unix.ENOBUFS
	}
	network, address := openedAt(at, only6)
	var c net.ListenConfig
	l, err := c.Listen(context.Background(), network, address)
	if asErrno(err) == unix.EADDRINUSE {
		b.dropGone(at.Port())
		l, err = c.Listen(context.Background(), network, address)
	}
	if err != nil {
		return nil, asErrno(err)
	}
	if d.ports == nil {
		d.ports = map[netip.AddrPort]*opened{}
	}
	p = &opened{Listener: l, only6: only6}
	d.ports[at] = p
	return p, 0
}

// openedAt returns where to listen outside for a server of the session. Which addresses the machine has the
// session does not see: a server at the one that its network has is open at all of them.
func openedAt(at netip.AddrPort, only6 bool) (network, address string) {
	network = "tcp"
	addr := at.Addr()
	switch {
	case addr == fork.HostAddress4:
		addr = netip.IPv4Unspecified()
	case addr == fork.HostAddress6:
		addr = netip.IPv6Unspecified()
		only6 = true
	}
	if only6 {
		network = "tcp6"
	}
	if addr.Is4() {
		network = "tcp4"
	}
	return network, netip.AddrPortFrom(addr, at.Port()).String()
}

// dropGone closes a port on all addresses where nothing of the session listens any more. d.mu is locked.
func (b *Broker) dropGone(port uint16) {
	for at, p := range b.door.ports {
		if at.Port() != port {
			continue
		}
		inner, err := b.reachOwn(at)
		if err == unix.ECONNREFUSED {
			b.door.drop(p, at)
		}
		if err == nil {
			inner.Close()
		}
	}
}

// drop closes a port. d.mu is locked.
func (d *door) drop(p *opened, at netip.AddrPort) {
	p.Close()
	if d.ports[at] == p {
		delete(d.ports, at)
	}
}

// opens reports whether this process listens outside on a port, for a server of the session.
func (d *door) opens(port uint16) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := range d.ports {
		if at.Port() == port {
			return true
		}
	}
	return false
}

// admit passes connections from outside on to a server of the session.
func (b *Broker) admit(p *opened, at netip.AddrPort) {
	for {
		outer, err := egress.Accept(p)
		if err != nil {
			b.closes(p, at, err)
			return
		}
		before := b.door.began(p)
		if !b.hasPlace() {
			hasten(outer)
			outer.Close()
			continue
		}
		inner, err := b.reachOwn(at)
		if err != nil {
			b.door.admitted.Add(-1)
			outer.Close()
		}
		if err == unix.ECONNREFUSED && b.door.unpublish(p, at, before) {
			return
		}
		if err == nil {
			go b.door.both(outer, inner)
		}
	}
}

// closes says why a port is closed to others before its server ends.
func (b *Broker) closes(p *opened, at netip.AddrPort, err error) {
	b.door.unpublish(p, at, b.door.began(p))
	if !errors.Is(err, net.ErrClosed) && b.Warn != nil {
		b.Warn(fmt.Sprintf("nobody outside reaches the command's server at port %d any more: %v", at.Port(), err))
	}
}

// hasPlace takes the place of a connection from outside, which both gives back. There are fewer than the relay
// has: programs outside must not use up the descriptors of this process.
func (b *Broker) hasPlace() bool {
	d := &b.door
	most := int32(max(d.net.Relay.Most/4, 1))
	if d.admitted.Add(1) <= most {
		return true
	}
	d.admitted.Add(-1)
	if b.Warn != nil {
		d.crowded.Do(func() {
			const text = "%d connections from outside to the command's servers are open: more are reset"
			b.Warn(fmt.Sprintf(text, most))
		})
	}
	return false
}

// began returns how often a server has begun to listen on an open port.
func (d *door) began(p *opened) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return p.listens
}

// unpublish closes a port, unless a server has begun to listen there since.
func (d *door) unpublish(p *opened, at netip.AddrPort, since int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.listens != since {
		return false
	}
	d.drop(p, at)
	return true
}

// reachOwn connects to a server of the session.
func (b *Broker) reachOwn(at netip.AddrPort) (net.Conn, error) {
	to := at
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	switch to.Addr() {
	case netip.IPv4Unspecified():
		to = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	case netip.IPv6Unspecified():
		to = netip.AddrPortFrom(netip.IPv6Loopback(), at.Port())
	}
	const kind = unix.SOCK_STREAM | unix.SOCK_NONBLOCK
	fd, errno := b.own.Socket(fork.SocketRequest{Family: int32(family), Kind: kind})
	if errno != 0 {
		return nil, errno
	}
	address := socketAddress(family, to)
	errno = connect(fd, address)
	if errno == unix.EINPROGRESS && failed(fd) {
		errno = connect(fd, address) // it returns the error
	}
	if errno != 0 && errno != unix.EINPROGRESS {
		unix.Close(fd)
		return nil, errno
	}
	return connection(fd)
}

// both passes bytes on in both directions, until both have ended. What is cut off, if only because this
// process ends, is reset: no peer takes a part for the whole.
func (d *door) both(outer, inner net.Conn) {
	hasten(outer)
	hasten(inner)
	d.passing.Add(1)
	done := make(chan struct{})
	go func() {
		passOn(outer, inner)
		d.passing.Add(-1)
		close(done)
	}()
	passOn(inner, outer)
	<-done
	outer.Close()
	inner.Close()
	d.admitted.Add(-1)
}

// hasten makes closing a connection reset it.
func hasten(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}

// passOn passes bytes on in one direction, and its end. After an error both are closed: the other
// direction would wait for what never comes.
func passOn(to, from net.Conn) {
	_, err := io.Copy(to, from)
	tcp, ok := to.(*net.TCPConn)
	if ok && err == nil {
		tcp.SetLinger(-1) // the kernel sends the rest
		err = tcp.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}
