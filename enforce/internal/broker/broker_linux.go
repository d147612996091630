package broker

import (
	"errors"
	"fmt"
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
	policy  *Policy
	hand    *handover // brings the queue
	queue   queue
	Watcher Watcher // or nil

	root    mountPoint // this process's own root directory
	self    identity   // what this process's threads are
	session session    // whose processes may be signalled
	sockets sessionSockets

	busy    atomic.Int32 // calls that are being answered
	workers sync.WaitGroup

	mu     sync.Mutex
	stop   [2]int            // a pipe; its writing end is closed when it is over
	askers map[uint64]*asker // by the inode of the command's end

	begun   atomic.Bool   // it is served, or never will be
	over    chan struct{} // closed when serving is to end
	ended   chan struct{} // closed once it has
	failure error         // why it ended
}

// Bounds of the calls that are being answered.
const (
	patience = 5 * time.Millisecond   // for how long one may hold up others
	farewell = 100 * time.Millisecond // for how long they are waited for when serving ends
	maxBusy  = 256                    // how many there may be, since each holds descriptors
)

var (
	errNoQueue  = errors.New("there is no queue of socket calls") // the command was not started
	errNoAnswer = errors.New("the kernel does not take the answers to socket calls")
	errIdentity = errors.New("a thread did not get its own credentials back")
)

// New makes the broker of a command that is to be started, and the steps that install
// its filter.
func New(policy *Policy, mem *fork.Memory, filter *seccomp.Filter) (*Broker, []fork.Step, error) {
	hand, err := newHandover(mem)
	if err != nil {
		return nil, nil, err
	}
	m := &Broker{policy: policy, hand: hand, over: make(chan struct{}), ended: make(chan struct{})}
	return m, hand.steps(mem, filter), nil
}

// Attach has the broker learn of the command's process. At once it serves from the
// command's first call on, which is its execve(2); else that is left to Serve.
func (m *Broker) Attach(c *fork.Command, atOnce bool) {
	begun := false
	c.Commit = append(c.Commit, func(p *fork.Process) error {
		m.hand.forked()
		if m.session.top = p.Pid; p.KeeperPid != 0 {
			m.session.top, m.session.keeper = p.KeeperPid, true
		}
		if begun = true; atOnce {
			go func() { _ = m.Serve() }()
		}
		return nil
	})
	c.Cleanup = append(c.Cleanup, func() {
		m.hand.forked()
		if atOnce && !begun {
			m.Close()
		}
	})
}

// Serve answers until the last process of the session has ended, or until Close. Called
// again, it waits for that.
func (m *Broker) Serve() error {
	if m.begun.Swap(true) {
		<-m.ended
		return m.failure
	}
	defer close(m.ended)
	fd, err := m.hand.receive()
	if err == nil {
		m.queue = newQueue(fd)
		err = m.serve()
	}
	if err != errNoQueue {
		m.finish(err)
	}
	return m.failure
}

// Close makes Serve return and gives up the kernel's queue.
func (m *Broker) Close() error {
	m.finish(nil)
	if !m.begun.Swap(true) {
		m.hand.close()
		close(m.ended)
	}
	return nil
}

// finish ends serving, for the first reason that is given.
func (m *Broker) finish(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isOver() {
		return
	}
	m.failure = err
	close(m.over)
	if m.stop[1] > 0 {
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

// serve serves the queue that is there. The error is that it could not begin.
func (m *Broker) serve() (err error) {
	stuck := false
	// The number of the queue's descriptor stays taken while a goroutine that is
	// stuck may come to use it.
	defer func() {
		if !stuck || unix.Dup3(m.stop[0], m.queue.fd, unix.O_CLOEXEC) != nil {
			unix.Close(m.queue.fd)
		}
	}()
	m.mu.Lock()
	err = unix.Pipe2(m.stop[:], unix.O_CLOEXEC)
	if err == nil && m.isOver() {
		unix.Close(m.stop[1])
	}
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	if !m.await() { // most short commands make no call
		unix.Close(m.stop[0])
		return nil
	}
	if m.self, err = ownIdentity(); err != nil {
		unix.Close(m.stop[0])
		return err
	}
	m.root, _ = mountOf("/")
	m.queue.wakeFast()
	m.lead()
	<-m.over
	all := make(chan struct{})
	go func() { m.workers.Wait(); close(all) }()
	select {
	case <-all:
		unix.Close(m.stop[0])
		m.session.close()
	case <-time.After(farewell):
		stuck = true
	}
	return nil
}

// lead starts a goroutine that leads.
func (m *Broker) lead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isOver() {
		return
	}
	m.workers.Add(1)
	go func() {
		defer m.workers.Done()
		var relief *time.Timer // none before the first call: Go's runtime ends a program that gets no poller for it
		for relief == nil || relief.Stop() {
			c := m.next()
			if c == nil {
				return
			}
			if relief == nil {
				relief = time.AfterFunc(patience, m.lead)
			} else {
				relief.Reset(patience)
			}
			c.relief = relief
			c.answer()
		}
	}()
}

// relieve has another goroutine lead at once, if the one that answers the call does.
func (c *Call) relieve() {
	if c.relief.Stop() {
		c.broker.lead()
	}
}

// next takes the next call; nil is the end.
func (m *Broker) next() *Call {
	for m.await() {
		c := &Call{broker: m}
		got, err := m.queue.receive(&c.notification)
		if err != nil {
			m.finish(fmt.Errorf("receiving a socket call: %w", err))
		}
		if got {
			c.from = caller{int(c.pid)}
			return c
		}
	}
	return nil
}

// await waits until there is a call, and reports false at the end.
func (m *Broker) await() bool {
	for !m.isOver() {
		p := []unix.PollFd{{Fd: int32(m.queue.fd), Events: unix.POLLIN}, {Fd: int32(m.stop[0]), Events: unix.POLLIN}}
		switch errno := patiently(func() unix.Errno { _, err := unix.Poll(p, -1); return asErrno(err) }); {
		case errno == unix.EINTR:
		case errno != 0:
			m.finish(fmt.Errorf("poll: %w", errno))
		case p[0].Revents&unix.POLLIN != 0:
			return true
		case p[0].Revents != 0: // the last process with the filter is gone
			m.finish(nil)
		}
	}
	return false
}
