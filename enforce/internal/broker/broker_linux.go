package broker

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// mediator is the state of a Broker. One goroutine leads: it takes calls from
// the queue and answers them. When a call takes longer than patience, another
// one takes the lead. So a call that waits, or that the command keeps from
// ending, keeps nobody but its caller waiting.
type mediator struct {
	policy  *Policy
	Hand    *handover // brings the queue
	queue   queue
	process *fork.Process

	watcher Watcher     // or nil
	early   atomic.Bool // it is served, and Serve is still to be called

	sockets sessionSockets
	askers  askers
	root    mountPoint // this process's own root directory
	self    identity   // what this process's threads are

	sessionMu sync.Mutex
	session   session // whose processes may be signalled

	busy    atomic.Int32 // calls that are being answered
	workers sync.WaitGroup

	mu      sync.Mutex
	lead    *request            // what the goroutine that leads is busy with; or nil
	seen    *request            // what it was busy with at the last look
	looking bool                // a look is to come
	open    map[uint64]struct{} // calls without an answer
	stop    [2]int              // a pipe; its writing end is closed to end serve
	done    bool                // serving, or never again
	closed  bool
	failure error         // why it ended
	over    chan struct{} // closed when it is to end
	ended   chan struct{} // closed once serve returns
}

// begins makes a mediator that has no queue yet.
func (m *mediator) begins(policy *Policy) {
	m.policy = policy
	m.sockets.diag.fd = -1
	m.open, m.over, m.ended = make(map[uint64]struct{}), make(chan struct{}), make(chan struct{})
}

// answer is what the caller of a mediated call gets.
type answer struct {
	errno    unix.Errno // 0 for success
	val      int64      // what the call returns then
	proceed  bool       // the kernel makes the call as if it had not been stopped
	deferred bool       // not yet: the call waits
}

func refused(errno unix.Errno) answer { return answer{errno: errno} }

// restart makes the call again or fail with EINTR, as the signal that is
// pending wants it (ERESTARTSYS of the kernel's linux/errno.h).
const restart = unix.Errno(512)

var (
	errServed   = errors.New("the mediator was closed or serves already")
	errNoQueue  = errors.New("there is no queue of socket calls") // the command was not started
	errNoAnswer = errors.New("the kernel does not take the answers to socket calls")
	errIdentity = errors.New("a thread did not get its own credentials back")
)

// maxBusy is how many calls may be unanswered at a time: each holds
// descriptors.
const maxBusy = 256

// request is one call of the command's that waits for its answer.
type request struct {
	notification
	from caller
	held []int // descriptors to close when it has its answer: see drop
}

// drop closes what a call held. That may take as long as the command likes,
// where it closed its own copy of a socket with SO_LINGER before.
func (c *request) drop() {
	for _, fd := range c.held {
		unix.Close(fd)
	}
}

// decide answers one call. Calls are decided at the same time as others.
func (m *mediator) decide(c *request) answer {
	if c.pid == 0 {
		return refused(unix.EACCES)
	}
	if answered, a := m.decideSignal(&c.notification, c.from); answered {
		return a
	}
	switch c.nr {
	case unix.SYS_CONNECT:
		return m.connect(c)
	case unix.SYS_SOCKET:
		return m.udp(c)
	case unix.SYS_LISTEN:
		return m.listen(c)
	}
	return refused(unix.EPERM)
}

// begin makes sure that it is served once, and waits for the queue.
func (m *mediator) begin() error {
	m.mu.Lock()
	done := m.done
	m.done = true
	m.mu.Unlock()
	if done {
		return errServed
	}
	fd, err := m.Hand.receive()
	m.queue = newQueue(fd)
	return err
}

func (m *mediator) prepare() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errServed
	}
	var err error
	if m.self, err = ownIdentity(); err != nil {
		return err
	}
	if err := unix.Pipe2(m.stop[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	m.root, _ = mountOf("/")
	m.queue.wakeFast()
	return nil
}

func (m *mediator) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	switch {
	case !m.done:
		m.done = true
		m.Hand.close()
	case m.stop[1] > 0:
		unix.Close(m.stop[1])
		m.stop[1] = 0
	}
	return nil
}

func (m *mediator) serve() error {
	err := m.begin()
	if err == errServed && m.early.Swap(false) {
		<-m.ended
		return m.failure
	}
	if err == errServed {
		return err
	}
	defer close(m.ended)
	switch err {
	case nil:
		return m.run()
	case errNoQueue:
		return nil
	}
	return err
}
