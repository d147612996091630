package broker

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/policy"
)

// sessionSockets are the listening Unix sockets of the session. A socket that
// listens keeps its name and the inode of its file for as long as it lives, and
// no other can be bound to the same inode: so a file is the session's exactly
// while the socket lives that was noted with it.
type sessionSockets struct {
	diag
	mu     sync.Mutex // of the rest
	byFile map[policy.FileID]boundSocket
	byName map[abstractName]boundSocket
	sweep  int // when there are more than that, the dead are taken out
}

// abstractName is one in a network namespace.
type abstractName struct {
	netns uint64 // the namespace's cookie; 0 where the kernel gives none (before 5.14)
	name  string // begins with a NUL byte
}

const firstSweep = 1024

// listen notes a Unix socket that is about to listen, by its address, which
// can't be changed any more. The call itself is left to the kernel, so that
// the programs that connect see the right process id: a thread that puts
// another socket onto the descriptor meanwhile has one that nobody noted.
// Where ports are limited, that would be too much trust.
func (m *mediator) listen(c *request) answer {
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
	return m.as(c, func() answer {
		if err := unix.Listen(s.fd, int(int32(c.args[1]))); err != nil {
			return refused(asErrno(err))
		}
		return answer{}
	})
}

func (m *mediator) note(c *request, s socket) {
	var st unix.Stat_t
	if unix.Fstat(s.fd, &st) != nil {
		return
	}
	b, err := m.sockets.find(uint32(st.Ino), cookie(s.fd))
	if err != nil {
		return
	}
	switch kind, name := parseAddress(socketName(s.fd)); {
	case kind == addressPath && b.ByPath:
		if id, ok := m.fileOf(c, name, &b); ok {
			m.sockets.noteFile(id, b)
		}
	case kind == addressAbstract:
		m.sockets.noteName(abstractName{netns(s.fd), name}, b)
	}
}

// fileOf finds the file that a socket was bound to. The kernel names it by
// half an inode number and the file system's device; the path may lead
// elsewhere by now, and another file system may use the number as well. Where
// files show another device than their file system has (btrfs, overlayfs), the
// mount tells that; since btrfs uses a number once in each subvolume, no other
// socket may then have the same name in the kernel.
func (m *mediator) fileOf(c *request, path string, b *boundSocket) (id policy.FileID, ok bool) {
	r, held, errno := c.from.route(path, m.root)
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
	return id, err == nil && device == b.Device && m.sockets.onlyOne(b)
}

func (o *sessionSockets) noteFile(id policy.FileID, b boundSocket) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clean()
	o.byFile[id] = b
}

func (o *sessionSockets) noteName(n abstractName, b boundSocket) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clean()
	o.byName[n] = b
}

// boundTo reports whether a living socket of the session is bound to a file.
func (o *sessionSockets) boundTo(st *unix.Stat_t) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := policy.FileID{Dev: st.Dev, Ino: st.Ino}
	b, ok := o.byFile[id]
	if !ok {
		return false
	}
	now, err := o.diag.find(b.Ino, b.Cookie)
	if err != nil {
		delete(o.byFile, id)
		return false
	}
	return now.ByPath && now.File == b.File && now.Device == b.Device
}

// listens reports whether the session has a socket with a name that still listens.
func (o *sessionSockets) listens(n abstractName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.byName[n]
	if !ok {
		return false
	}
	now, err := o.diag.find(b.Ino, b.Cookie)
	return err == nil && now.Listens
}

// clean takes out the sockets that are gone, when there are many.
func (o *sessionSockets) clean() {
	if o.byFile == nil {
		o.byFile, o.byName, o.sweep = make(map[policy.FileID]boundSocket), make(map[abstractName]boundSocket), firstSweep
	}
	if len(o.byFile)+len(o.byName) < o.sweep {
		return
	}
	gone := func(b boundSocket) bool { _, err := o.diag.find(b.Ino, b.Cookie); return err != nil }
	for id, b := range o.byFile {
		if gone(b) {
			delete(o.byFile, id)
		}
	}
	for name, b := range o.byName {
		if gone(b) {
			delete(o.byName, name)
		}
	}
	o.sweep = max(firstSweep, 2*(len(o.byFile)+len(o.byName)))
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
