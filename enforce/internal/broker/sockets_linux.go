package broker

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/policy"
)

// sessionSockets are the Unix sockets of the session that listen, by their cookies. An
// address is the session's exactly while all that the kernel has bound to it is among
// them: a socket keeps its name and the inode of its file for as long as it lives.
type sessionSockets struct {
	mu    sync.Mutex
	all   map[[2]uint32]bool
	sweep int // when there are more than that, the dead are taken out
}

const firstSweep = 1024

// note adds a socket. When there are many, those that are gone are taken out.
func (o *sessionSockets) note(fd int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all, o.sweep = make(map[[2]uint32]bool), firstSweep
	}
	if len(o.all) >= o.sweep {
		living := make(map[[2]uint32]bool)
		err := boundSockets(fd, func(s *boundSocket) {
			if o.all[s.cookie] {
				living[s.cookie] = true
			}
		})
		if err == nil {
			o.all = living
		}
		o.sweep = max(firstSweep, 2*len(o.all))
	}
	o.all[cookie(fd)] = true
}

// bound reports whether any socket is bound to an address that a socket is to be
// connected to, and whether all that are so are the session's. When the kernel can't be
// asked, some are and they are not.
func (o *sessionSockets) bound(fd int, here func(*boundSocket) bool) (any, own bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	own = true
	err := boundSockets(fd, func(s *boundSocket) {
		if here(s) {
			any, own = true, own && o.all[s.cookie]
		}
	})
	return any || err != nil, any && own && err == nil
}

// listen notes a Unix socket that is about to listen. The call itself is left to the
// kernel, so that the programs that connect see the right process id: a thread that puts
// another socket onto the descriptor meanwhile has one that nobody noted.
// Where ports are limited, that would be too much trust.
func (m *Broker) listen(c *Call) answer {
	s, errno := c.socket()
	if errno != 0 {
		return refused(errno)
	}
	if !m.queue.valid(c.id) {
		return refused(unix.EINTR) // the socket may be that of another process
	}
	switch {
	case s.domain == unix.AF_UNIX:
		m.sockets.note(s.fd)
	case !m.policy.mayUse(socketName(s.fd), m.policy.Net.BindTCP): // bound to none, it would get a port of the kernel's choice
		return refused(unix.EACCES)
	}
	if m.policy.Net.Mode != policy.NetPorts {
		return answer{proceed: true}
	}
	return m.as(c, func() answer { return refused(asErrno(unix.Listen(s.fd, int(int32(c.args[1]))))) })
}

// socketName is a socket's own address.
func socketName(fd int) []byte {
	buf := make([]byte, maxAddress)
	n := uint32(len(buf))
	_, _, errno := unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&n)))
	if errno != 0 || n > uint32(len(buf)) {
		return nil
	}
	return buf[:n]
}
