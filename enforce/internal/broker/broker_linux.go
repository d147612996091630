package broker

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// Broker answers the calls that the filter of one command hands over, and of all that
// it starts. It is a handle of the kernel's queue of such calls.
//
// Calls made while nobody serves them wait. Once the broker is closed, or its process
// has ended, they fail with ENOSYS.
//
// One goroutine leads: it takes calls from the queue and answers them. When a call takes
// longer than patience, another one takes the lead, and the first ends with its call. So
// a call that waits, or that the command keeps from ending, keeps nobody but its caller
// waiting.
type Broker struct {
	policy *Policy
	hand   *handover // brings the queue
	queue  queue

	// Watch, unless it is nil, sees each call before it is answered. It answers it, or
	// leaves it to the broker and gives what is told of a refusal.
	Watch func(c *Call) (refused func(unix.Errno))

	self    identity // what this process's threads are
	session session  // whose processes may be signalled
	sockets sessionSockets

	busy    atomic.Int32 // calls that are being answered
	workers sync.WaitGroup

	mu     sync.Mutex
	askers map[[2]uint32]int // sockets by which names are asked for, by the cookie of the command's end

	received, begun sync.Once // the queue came, and is served; or never will

	over    chan struct{} // closed when serving is over
	stop    [2]int        // a pipe, whose writing end is closed then
	failure error         // why

	receiving atomic.Int32 // who waits for a call, or is about to: one at most
}

// Bounds of the calls that are being answered.
const (
	patience = 5 * time.Millisecond // for how long one may hold up others
	maxBusy  = 256                  // how many there may be, since each holds descriptors
)

var (
	errNoQueue  = errors.New("there is no queue of socket calls") // the command was not started
	errNoAnswer = errors.New("the kernel does not take the answers to socket calls")
	errIdentity = errors.New("a thread did not get its own credentials back")
)

// New makes the broker of a command that is to be started, and the steps that install
// its filter.
func New(policy *Policy, mem *fork.Memory, filter *seccomp.Filter) (*Broker, []fork.Step, error) {
	hand, err := newHandover()
	if err != nil {
		return nil, nil, err
	}
	return &Broker{policy: policy, hand: hand, over: make(chan struct{}), askers: map[[2]uint32]int{}}, hand.steps(mem, filter), nil
}

// Attach has the broker learn of the command's process. At once it serves from the
// command's first call on, which is its execve(2); else that is left to Serve.
func (m *Broker) Attach(c *fork.Command, atOnce bool) {
	forked := func() {
		if m.hand.forked(); atOnce {
			go func() { _ = m.Serve() }() // which ends where there is no command
		}
	}
	c.Commit = append(c.Commit, func(p *fork.Process) error {
		m.mu.Lock()
		m.session.top = p.KeeperPid
		m.mu.Unlock()
		forked()
		return nil
	})
	c.Cleanup = append(c.Cleanup, forked)
	// The keeper gives its copy up: only this process receives.
	c.Before = append(c.Before, fork.Step{Name: "close(2) of the end for the queue of socket calls", Nr: unix.SYS_CLOSE, Args: [6]uintptr{uintptr(m.hand.parent)}})
}

// Queue receives the queue of a command that was started, and gives its descriptor: as
// long as that can't be read there is nothing to Serve. It is -1 where there is none, or
// it is served already.
func (m *Broker) Queue() int {
	fd := -1
	m.received.Do(func() {
		if fd, m.failure = m.hand.receive(); m.failure == nil {
			m.queue = newQueue(fd)
		}
	})
	return fd
}

// Serve answers until the last process of the session has ended. Called again, it waits
// for that.
func (m *Broker) Serve() error {
	m.Queue()
	m.begun.Do(m.serve)
	return m.failure
}

// Close gives up what nobody serves: no command was started, or all have ended.
func (m *Broker) Close() error {
	m.received.Do(m.hand.close)
	m.begun.Do(m.queue.close)
	return nil
}

// finish ends serving, for the first reason that is given.
func (m *Broker) finish(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isOver() {
		m.failure = err
		close(m.over)
		unix.Close(m.stop[1])
	}
}

func (m *Broker) isOver() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

func (m *Broker) serve() {
	if m.queue.control == nil {
		return
	}
	if m.failure = unix.Pipe2(m.stop[:], unix.O_CLOEXEC); m.failure != nil {
		m.queue.close()
		return
	}
	if st, err := (caller{unix.Gettid()}).status(); err != nil {
		m.finish(fmt.Errorf("this process's own credentials: %w", err))
	} else {
		m.self = st.identity
	}
	m.mu.Lock()
	top := m.session.top
	m.mu.Unlock()
	var err error
	if m.session.pidfd, err = unix.PidfdOpen(top, 0); err != nil { // then nobody is the session's
		m.session.pidfd = -1
	}
	m.queue.wakeFast()
	m.lead()
	m.await()
	// The queue is given up, its number stays taken while a goroutine that is stuck may
	// come to use it.
	_ = unix.Dup3(m.stop[0], m.queue.fd, unix.O_CLOEXEC)
	go func() {
		m.workers.Wait()
		m.queue.close()
		unix.Close(m.stop[0])
		unix.Close(m.session.pidfd)
	}()
}

// lead starts a goroutine that leads.
func (m *Broker) lead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isOver() {
		return
	}
	m.workers.Go(func() {
		c := &Call{broker: m}
		for m.next(c) {
			if c.relief == nil { // none before the first call: Go's runtime ends a program that gets no poller for it
				c.relief = time.AfterFunc(patience, m.lead)
			} else {
				c.relief.Reset(patience)
			}
			c.answer()
			if !c.relief.Stop() {
				return
			}
		}
	})
}

// relieve has another goroutine lead at once, if the one that answers the call does.
func (c *Call) relieve() {
	if c.relief.Stop() {
		c.broker.lead()
	}
}

// next waits for the next call, and reports false at the end.
func (m *Broker) next(c *Call) bool {
	m.receiving.Add(1)
	defer m.receiving.Add(-1)
	for !m.isOver() {
		got, err := m.queue.receive(&c.notification)
		if err != nil {
			m.finish(fmt.Errorf("receiving a socket call: %w", err))
		}
		if got {
			c.from, c.held = caller{int(c.pid)}, c.held[:0]
			return true
		}
		if m.queue.over() {
			m.finish(nil)
		}
	}
	return false
}

// await waits until the last process with the filter is gone, or serving is over for
// another reason. Then nobody waits for a call any more: before Linux 6.11 who waits is
// not told that none will come, and a signal has to. It is the one by which Go's runtime
// interrupts its threads at any time.
func (m *Broker) await() {
	p := []unix.PollFd{{Fd: int32(m.queue.fd)}, {Fd: int32(m.stop[0]), Events: unix.POLLIN}}
	errno := unix.EINTR
	for errno == unix.EINTR {
		errno = patiently(func() unix.Errno { _, err := unix.Poll(p, -1); return asErrno(err) })
	}
	if errno != 0 {
		m.finish(fmt.Errorf("poll: %w", errno))
	}
	m.finish(nil)
	for i := 0; i < attempts && m.receiving.Load() > 0; i++ {
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			tid, _ := strconv.Atoi(t.Name())
			_ = unix.Tgkill(unix.Getpid(), tid, unix.SIGURG)
		}
		_, _ = unix.Poll(nil, 1) // a millisecond, without a timer of Go's
	}
}
