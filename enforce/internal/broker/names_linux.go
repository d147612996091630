package broker

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Names are asked for by UDP. A real UDP socket sends to whatever address stands in
// memory (sendmsg(2)), where no filter looks. So the command gets none: what it takes
// for one is an end of a pair of SOCK_SEQPACKET, on which the kernel looks at no
// address. Behind the other end this process has the real one, which sends nothing
// before it was connected to a name server.

// asker is one such pair.
type asker struct {
	mine, out int
}

const (
	maxAskers = 256
	maxAnswer = 8 << 10 // bytes; EDNS asks for at most 4096 by common use
)

// udp makes what the command takes for a UDP socket.
func (m *Broker) udp(c *Call) answer {
	if p := int32(c.args[2]); p != 0 && p != unix.IPPROTO_UDP {
		return refused(unix.EACCES)
	}
	out, err := unix.Socket(int(int32(c.args[0])), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return refused(asErrno(err))
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		unix.Close(out)
		return refused(asErrno(err))
	}
	c.held = append(c.held, pair[0])
	a := &asker{mine: pair[1], out: out}
	var st unix.Stat_t
	flags := c.args[1]
	if err = unix.SetNonblock(pair[0], flags&unix.SOCK_NONBLOCK != 0); err == nil {
		err = unix.Fstat(pair[0], &st)
	}
	if err == nil {
		err = m.hold(st.Ino, a)
	}
	if err != nil {
		a.close()
		return refused(unix.ENOBUFS)
	}
	go func() {
		a.relay()
		m.mu.Lock()
		delete(m.askers, st.Ino)
		m.mu.Unlock()
		a.close()
	}()
	fd, errno := m.queue.give(c.id, pair[0], flags&unix.SOCK_CLOEXEC)
	return answer{errno: errno, val: fd}
}

// ask connects the real socket, if s is the command's end of a pair.
func (m *Broker) ask(c *Call, s socket, addr []byte) (answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var st unix.Stat_t
	if len(m.askers) == 0 || unix.Fstat(s.fd, &st) != nil {
		return answer{}, false
	}
	a := m.askers[st.Ino]
	switch {
	case a == nil:
		return answer{}, false
	case !m.queue.valid(c.id):
		return refused(unix.EINTR), true
	case !m.policy.mayAsk(addr):
		return refused(unix.EACCES), true
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(a.out), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return refused(errno), true
}

// hold keeps a pair by the inode of the command's end.
func (m *Broker) hold(ino uint64, a *asker) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.askers) >= maxAskers {
		return unix.ENOBUFS
	}
	if m.askers == nil {
		m.askers = make(map[uint64]*asker)
	}
	m.askers[ino] = a
	return nil
}

func (a *asker) close() {
	unix.Close(a.mine)
	unix.Close(a.out)
}

// relay carries questions and answers until the command's end is closed. What can't
// be sent is lost, as by UDP.
func (a *asker) relay() {
	buf := make([]byte, maxAnswer)
	for {
		p := []unix.PollFd{{Fd: int32(a.mine), Events: unix.POLLIN}, {Fd: int32(a.out), Events: unix.POLLIN}}
		if _, err := unix.Poll(p, -1); err != nil && err != unix.EINTR {
			return
		}
		if p[0].Revents != 0 {
			n, _, err := unix.Recvfrom(a.mine, buf, unix.MSG_DONTWAIT)
			if n > 0 {
				_, _ = unix.Write(a.out, buf[:n])
			} else if err == nil || err != unix.EAGAIN && err != unix.EINTR {
				return
			}
		}
		if p[1].Revents != 0 {
			if n, err := unix.Read(a.out, buf); err == nil {
				_ = unix.Send(a.mine, buf[:n], unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			}
		}
	}
}

// give puts a descriptor into the caller's table, and says its number there
// (SECCOMP_IOCTL_NOTIF_ADDFD).
func (q *queue) give(id uint64, fd int, flags uint64) (int64, unix.Errno) {
	const addFD = 0x40182103
	arg := struct {
		id                          uint64
		flags, source, number, with uint32
	}{id: id, source: uint32(fd), with: uint32(flags)}
	for {
		r, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(q.fd), addFD, uintptr(unsafe.Pointer(&arg)))
		if errno != unix.EINTR {
			return int64(r), errno
		}
	}
}
