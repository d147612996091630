package broker

import (
	"maps"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/policy"
)

// sessionSockets are the listening Unix sockets of the session. A socket that
// listens keeps its name and the inode of its file for as long as it lives, and
// no other can be bound to the same inode: so an address is the session's exactly
// while the socket lives that was noted with it.
type sessionSockets struct {
	mu    sync.Mutex
	all   map[address]boundSocket
	sweep int // when there are more than that, the dead are taken out
}

// address is what a Unix socket is bound to: a file, or an abstract name. Each kind of
// socket and each network namespace has names of its own: a program outside may have the
// same one for another kind.
type address struct {
	file  policy.FileID
	half  kernelFile // of a file that was not found
	name  string     // begins with a NUL byte
	kind  int        // SOCK_*
	netns uint64     // the namespace's cookie; 0 where the kernel gives none (before 5.14)
}

// abstract is the address that a name is for a socket.
func abstract(fd int, name string) (_ address, ok bool) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return address{name: name, kind: kind, netns: netns(fd)}, err == nil
}

const firstSweep = 1024

// note keeps a socket with its address. When there are many, those that are gone are
// taken out.
func (o *sessionSockets) note(a address, b boundSocket) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all, o.sweep = make(map[address]boundSocket), firstSweep
	}
	if len(o.all) >= o.sweep {
		maps.DeleteFunc(o.all, func(_ address, b boundSocket) bool { _, gone := b.lives(); return gone })
		o.sweep = max(firstSweep, 2*len(o.all))
	}
	o.all[a] = b
}

// moved reports whether a file is that of a living socket of the session which had been
// renamed or linked before it listened, as supervisord(1) does. Other files may have the
// same numbers: the socket has to be the only one that is bound to such, and to have
// been so all the while.
func (m *Broker) moved(c *Call, fd int, st *unix.Stat_t) bool {
	half := kernelFile{uint32(st.Ino), [2]uint32{unix.Major(st.Dev), unix.Minor(st.Dev)}}
	b, ok := m.sockets.get(address{half: half})
	if !ok {
		half.Device, _ = c.from.fileSystem(fd)
		b, ok = m.sockets.get(address{half: half})
	}
	if !ok || !b.onlyOne() {
		return false
	}
	lives, _ := b.lives()
	return lives
}

func (o *sessionSockets) get(a address) (boundSocket, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.all[a]
	return b, ok
}

// alive reports whether a living socket of the session is bound to an address.
func (o *sessionSockets) alive(a address) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.all[a]
	if !ok {
		return false
	}
	lives, gone := b.lives()
	if gone {
		delete(o.all, a)
	}
	return lives
}

// listen notes a Unix socket that is about to listen, by its address, which
// can't be changed any more. The call itself is left to the kernel, so that
// the programs that connect see the right process id: a thread that puts
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
		m.note(c, s)
	case !m.policy.mayListen(socketName(s.fd)):
		return refused(unix.EACCES)
	}
	if !m.policy.listensItself() {
		return answer{proceed: true}
	}
	return m.as(c, func() answer { return refused(asErrno(unix.Listen(s.fd, int(int32(c.args[1]))))) })
}

func (m *Broker) note(c *Call, s socket) {
	var st unix.Stat_t
	if unix.Fstat(s.fd, &st) != nil {
		return
	}
	b, err := findSocket(uint32(st.Ino), cookie(s.fd))
	if err != nil {
		return
	}
	switch kind, name := parseAddress(socketName(s.fd)); {
	case kind == addressPath && b.ByPath:
		a := address{half: b.kernelFile}
		if id, ok := m.fileOf(c, name, &b); ok {
			a = address{file: id}
		}
		m.sockets.note(a, b)
	case kind == addressAbstract:
		if a, ok := abstract(s.fd, name); ok {
			m.sockets.note(a, b)
		}
	}
}

// fileOf finds the file that a socket was bound to. The kernel names it by
// half an inode number and the file system's device; the path may lead
// elsewhere by now, and another file system may use the number as well. Where
// files show another device than their file system has (btrfs, overlayfs), the
// mount tells that; since btrfs uses a number once in each subvolume, no other
// socket may then have the same name in the kernel.
func (m *Broker) fileOf(c *Call, path string, b *boundSocket) (id policy.FileID, ok bool) {
	r, held, errno := c.from.route(unix.AT_FDCWD, path, m.root)
	c.held = append(c.held, held...)
	if errno != 0 {
		return id, false
	}
	fd := -1
	if m.as(c, func() answer { fd, errno = r.Walk(); return refused(errno) }).errno != 0 {
		return id, false
	}
	c.held = append(c.held, fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || uint32(st.Ino) != b.File || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return id, false
	}
	id = policy.FileID{Dev: st.Dev, Ino: st.Ino}
	if b.Device == [2]uint32{unix.Major(st.Dev), unix.Minor(st.Dev)} {
		return id, true
	}
	device, err := c.from.fileSystem(fd)
	return id, err == nil && device == b.Device && b.onlyOne()
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

// netns is the cookie of a socket's network namespace.
func netns(fd int) uint64 {
	const soNetnsCookie = 71
	n, _ := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, soNetnsCookie)
	return n
}

// cookie is a socket's own, as sock_diag(7) has it: the inode numbers of
// sockets have 32 bits, and come round. It is none that a socket has where the
// kernel gives none.
func cookie(fd int) [2]uint32 {
	n, _ := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	return [2]uint32{uint32(n), uint32(n >> 32)}
}
