package broker

import (
	"context"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
)

// Name servers are asked by UDP. A real UDP socket sends to the address that sendmsg(2) finds
// in memory, where no filter can look. So the command gets one end of a SOCK_SEQPACKET pair
// instead, on which the kernel ignores addresses. This process has the other end and the real
// UDP socket, which sends nothing until it is connected to a name server. With a network by name
// there is no real one: zsbx answers.

const (
	maxAskers = 256
	maxAnswer = 8 << 10 // bytes; EDNS commonly asks for at most 4096

	noSocket = -1 // in place of the real UDP socket
)

// udp makes the pair whose end the command uses as its UDP socket.
func (b *Broker) udp(c *Call) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := int32(c.args[2]); p != 0 && p != unix.IPPROTO_UDP {
		return refused(unix.EACCES)
	}
	if len(b.askers) >= maxAskers {
		return refused(unix.ENOBUFS)
	}
	flags := int(c.args[1])
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|flags&unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return refused(asErrno(err))
	}
	c.descriptors = append(c.descriptors, pair[0])
	out := noSocket
	if b.door.net == nil {
		out, err = unix.Socket(int(int32(c.args[0])), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	}
	if err != nil {
		unix.Close(pair[1])
		return refused(asErrno(err))
	}
	end := cookie(pair[0])
	b.askers[end] = out
	go func() {
		if out == noSocket {
			b.answerNames(pair[1])
		} else {
			b.relay(pair[1], out)
			unix.Close(out)
		}
		b.mu.Lock()
		delete(b.askers, end)
		b.mu.Unlock()
		unix.Close(pair[1])
	}()
	return b.queue.give(c.id, pair[0], flags&unix.SOCK_CLOEXEC)
}

// ask connects the real socket if s is the command's end of a pair. Any process of the session
// may use any pair.
func (b *Broker) ask(s socket, addr []byte) (a answer, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.askers) == 0 {
		return a, false
	}
	out, is := b.askers[cookie(s.fd)]
	if out == noSocket {
		return toResolver(addr), true
	}
	switch {
	case is && b.policy.mayAsk(addr):
		a = refused(connect(out, addr))
	case is:
		a = refused(unix.EACCES)
	}
	return a, is
}

// toResolver answers if zsbx is at the other end of a pair: as every name server, and there is no route to
// anything else, so that programs give up UDP at once.
func toResolver(addr []byte) answer {
	to, _ := internetAddress(addr)
	if to.Port() != domain {
		return refused(unix.ENETUNREACH)
	}
	return answer{}
}

// relay passes questions and answers on until the command's end is closed or serving is over.
// It drops what can't be sent, as UDP does.
func (b *Broker) relay(mine, out int) {
	buf := make([]byte, maxAnswer)
	for {
		p := []unix.PollFd{{Fd: int32(mine), Events: unix.POLLIN}, {Fd: int32(out), Events: unix.POLLIN}}
		if !b.until(p, 0) {
			return
		}
		if p[0].Revents != 0 {
			n, _ := unix.Read(mine, buf)
			if n <= 0 {
				return
			}
			_, _ = unix.Write(out, buf[:n])
		}
		if p[1].Revents != 0 {
			if n, err := unix.Read(out, buf); err == nil {
				_ = unix.Send(mine, buf[:n], unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			}
		}
	}
}

// answerNames answers questions until the command's end is closed or serving is over.
func (b *Broker) answerNames(mine int) {
	buf := make([]byte, maxAnswer)
	for b.until([]unix.PollFd{{Fd: int32(mine), Events: unix.POLLIN}}, 0) {
		n, _ := unix.Read(mine, buf)
		if n <= 0 {
			return
		}
		out := b.door.net.Resolver.Answer(context.Background(), buf[:n])
		if out != nil {
			_ = unix.Send(mine, out, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		}
	}
}

// give puts a descriptor into the caller's table (SECCOMP_IOCTL_NOTIF_ADDFD). The answer has
// its number there.
func (q *queue) give(id uint64, fd, flags int) (a answer) {
	arg := struct {
		id                          uint64
		flags, source, number, with uint32
	}{id: id, source: uint32(fd), with: uint32(flags)}
	a.errno = fork.Retry(func() unix.Errno {
		r, _, errno := unix.Syscall(unix.SYS_IOCTL,
			uintptr(q.fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, uintptr(unsafe.Pointer(&arg)))
		a.val = int64(r)
		return errno
	})
	return a
}
