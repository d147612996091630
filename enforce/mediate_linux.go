package enforce

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// mediator is the state of a Mediator. All but stop belongs to the goroutine
// that serves.
type mediator struct {
	policy   *Mediation
	hand     *handover // brings listener
	listener int       // the kernel's queue
	process  *fork.Process
	keeper   *fork.Fetcher // of a session that goes on without its caller; or nil

	events  int // epoll(7) of the queue, of stop and of the waiting sockets
	diag    diag
	own     ownSockets
	waiting map[uint64]*waiter // calls that would block, by notification
	root    mountPoint         // this process's own root directory

	mu     sync.Mutex
	stop   [2]int // a pipe; its writing end is closed to end serve
	done   bool   // serving, or never again
	closed bool
	kept   bool          // the queue outlives serve
	apart  bool          // another process serves
	ended  chan struct{} // closed once serve returns
}

// notification is struct seccomp_notif, response is struct seccomp_notif_resp
// (linux/seccomp.h).
type notification struct {
	id         uint64
	pid, flags uint32 // pid is the thread's, as this process sees it; 0 if it can't
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// answer is what the caller of a mediated call gets.
type answer struct {
	errno    unix.Errno // 0 for success
	proceed  bool       // the kernel makes the call as if it had not been stopped
	deferred bool       // not yet: the call waits
}

func refused(errno unix.Errno) answer { return answer{errno: errno} }

// restart makes the call again or fail with EINTR, as the signal that is
// pending wants it (ERESTARTSYS of the kernel's linux/errno.h).
const restart = unix.Errno(512)

var errServed = errors.New("the mediator was closed or serves already")

// errNoQueue: the command was not started.
var errNoQueue = errors.New("there is no queue of socket calls")

// begin makes sure that one goroutine serves, and waits for the queue.
func (m *mediator) begin() error {
	m.mu.Lock()
	done := m.done
	m.done = true
	m.mu.Unlock()
	if done {
		return errServed
	}
	if m.listener = m.hand.receive(); m.listener < 0 {
		return errNoQueue
	}
	return nil
}

func (m *mediator) open() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errServed
	}
	if err := unix.Pipe2(m.stop[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	var err error
	if m.events, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	for _, fd := range []int{m.listener, m.stop[0]} {
		if err := unix.EpollCtl(m.events, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return fmt.Errorf("epoll_ctl: %w", err)
		}
	}
	m.waiting = make(map[uint64]*waiter)
	m.diag.fd = -1
	m.root, _ = mountOf("/")
	// Linux 6.6: the thread that asks gives up the processor to the one that
	// answers. Older kernels say EINVAL.
	unix.Syscall(unix.SYS_IOCTL, uintptr(m.listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return nil
}

func (m *mediator) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	switch {
	case m.apart:
		m.hand.forked()
	case !m.done:
		m.done = true
		m.hand.close()
	case m.stop[1] > 0:
		unix.Close(m.stop[1])
		m.stop[1] = 0
	}
	return nil
}

// release gives up what open made.
func (m *mediator) release() {
	for id, w := range m.waiting {
		m.respond(id, refused(unix.EINTR))
		w.close()
	}
	m.diag.close()
	unix.Close(m.events)
	m.giveUpQueue()
	m.mu.Lock()
	defer m.mu.Unlock()
	unix.Close(m.stop[0])
	if m.stop[1] > 0 {
		unix.Close(m.stop[1])
		m.stop[1] = 0
	}
}

// giveUpQueue closes it, unless somebody else goes on with it.
func (m *mediator) giveUpQueue() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.kept {
		unix.Close(m.listener)
	}
}

func (m *mediator) serve() error {
	switch err := m.begin(); err {
	case nil:
	case errNoQueue:
		close(m.ended)
		return nil
	default:
		return err
	}
	defer close(m.ended)
	return m.run()
}

// run serves the queue that is there.
func (m *mediator) run() error {
	if err := m.open(); err != nil {
		m.giveUpQueue()
		return err
	}
	defer m.release()
	events := make([]unix.EpollEvent, 16)
	for {
		n, err := unix.EpollWait(m.events, events, m.timeout())
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("epoll_wait: %w", err)
		}
		for _, ev := range events[:max(n, 0)] {
			switch int(ev.Fd) {
			default:
				m.markReady(ev.Fd)
			case m.stop[0]:
				return nil
			case m.listener:
				if ev.Events&unix.EPOLLIN != 0 {
					m.receive()
				} else if ev.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
					return nil // the last process with the filter is gone
				}
			}
		}
		m.continueWaiting()
	}
}

// receive takes one call from the queue and answers it.
func (m *mediator) receive() {
	var n notification
	if m.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
		return // it was killed meanwhile, or interrupted
	}
	a := m.decide(&n)
	if !a.deferred {
		m.respond(n.id, a)
	}
}

func (m *mediator) respond(id uint64, a answer) {
	r := response{id: id, errno: -int32(a.errno)}
	if a.proceed {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	m.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// valid says whether the thread that made a call still waits for the answer.
// If so, whatever was looked up by its number until now was about it, and not
// about a later thread with the same number.
func (m *mediator) valid(id uint64) bool {
	return m.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

func (m *mediator) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m.listener), request, uintptr(arg))
	return errno
}

// decide answers one call.
func (m *mediator) decide(n *notification) answer {
	if n.pid == 0 {
		return refused(unix.EACCES)
	}
	t := caller{int(n.pid), m.keeper}
	sock, errno := t.socket(int(int32(n.args[0])))
	if errno != 0 {
		return refused(errno)
	}
	switch n.nr {
	case unix.SYS_CONNECT:
		return m.connect(n, t, sock)
	case unix.SYS_LISTEN:
		defer unix.Close(sock.fd)
		return m.listen(n, t, sock)
	}
	unix.Close(sock.fd)
	return refused(unix.EPERM)
}
