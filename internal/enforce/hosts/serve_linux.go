package hosts

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxAsking is how many questions by UDP are answered at a time. More are dropped, as a name
// server does that is busy.
const maxAsking = 256

// ServeNames answers the messages that come to a UDP socket for port 53 of any address, as the
// name server that was asked, until the function that it returns is called. It takes the
// descriptor.
func (n *Net) ServeNames(fd, family int) (stop func(), _ error) {
	var err error
	if family == unix.AF_INET6 {
		// No device has the addresses that answers come from: for IPv6 a local route is not enough.
		err = cmp.Or(
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	}
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	file := os.NewFile(uintptr(fd), "names")
	defer file.Close()
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	go n.answerAll(conn.(*net.UDPConn))
	return func() { conn.Close() }, nil
}

// answerAll answers messages until the socket is closed.
func (n *Net) answerAll(c *net.UDPConn) {
	const pause = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asking := make(chan struct{}, maxAsking)
	message := make([]byte, 4<<10)
	control := make([]byte, 128)
	for {
		size, controls, _, from, err := c.ReadMsgUDPAddrPort(message, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(pause) // such as for memory
			continue
		}
		question := append([]byte(nil), message[:size]...)
		source := answersFrom(control[:controls])
		select {
		case asking <- struct{}{}:
			go func() {
				defer func() { <-asking }()
				n.answer(ctx, c, question, source, from)
			}()
		default:
		}
	}
}

// ServeQuestions answers the messages of a connection by TCP, and closes it: at once if too many are open.
func (n *Net) ServeQuestions(c net.Conn) {
	if int(n.streams.Add(1)) <= n.Relay.Most {
		n.Resolver.Serve(context.Background(), c)
	}
	c.Close()
	n.streams.Add(-1)
}

// answer answers one message.
func (n *Net) answer(ctx context.Context, c *net.UDPConn, question, source []byte, from netip.AddrPort) {
	out := n.Resolver.Answer(ctx, question)
	if out != nil {
		_, _, _ = c.WriteMsgUDPAddrPort(out, source, from) // harmless: a lost answer is asked for again
	}
}

// answersFrom returns the control message that makes an answer come from the address that was
// asked (ip(7), ipv6(7)).
func answersFrom(control []byte) []byte {
	all, _ := unix.ParseSocketControlMessage(control) // harmless: the kernel chooses an address then
	is := func(m unix.SocketControlMessage, level, kind int32, size int) bool {
		return m.Header.Level == level && m.Header.Type == kind && len(m.Data) >= size
	}
	for _, m := range all {
		switch {
		case is(m, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo):
			var i unix.Inet4Pktinfo
			copy(i.Spec_dst[:], m.Data[8:12]) // ipi_addr, the destination in the packet
			return unix.PktInfo4(&i)
		case is(m, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo):
			var i unix.Inet6Pktinfo
			copy(i.Addr[:], m.Data[:16])
			i.Ifindex = binary.NativeEndian.Uint32(m.Data[16:]) // a link-local address needs it
			return unix.PktInfo6(&i)
		}
	}
	return nil
}
