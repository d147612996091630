package broker

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a call may hold up others.
const patience = 5 * time.Millisecond

// farewell is how long the calls that are being answered when serving ends are
// waited for.
const farewell = 100 * time.Millisecond

// run serves the queue that is there.
func (m *mediator) run() error {
	if err := m.prepare(); err != nil {
		m.giveUpQueue(false)
		if err == errServed { // closed before it began
			return nil
		}
		return err
	}
	all := make(chan struct{})
	m.hire()
	<-m.over
	go func() { m.workers.Wait(); close(all) }()
	stuck := false
	select {
	case <-all:
	case <-time.After(farewell):
		stuck = true
	}
	m.sockets.close()
	m.session.close()
	m.giveUpQueue(stuck)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !stuck {
		unix.Close(m.stop[0])
	}
	if m.stop[1] > 0 {
		unix.Close(m.stop[1])
		m.stop[1] = 0
	}
	return m.failure
}

// giveUpQueue answers what has no answer yet, and closes the queue. The number of its descriptor stays taken while
// a goroutine that is stuck may come to use it.
func (m *mediator) giveUpQueue(stuck bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.open {
		if m.queue.send(id, refused(unix.EINTR)) != nil {
			break // the end of the queue answers the rest
		}
	}
	clear(m.open)
	switch {
	case stuck && unix.Dup3(m.stop[0], m.queue.fd, unix.O_CLOEXEC) == nil:
	default:
		unix.Close(m.queue.fd)
	}
}

// finish ends serving, for the first reason that is given.
func (m *mediator) finish(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.over:
	default:
		m.failure = err
		close(m.over)
	}
}

// hire starts a goroutine that leads.
func (m *mediator) hire() {
	m.workers.Add(1)
	go func() {
		defer m.workers.Done()
		for {
			c := m.next()
			if c == nil {
				return
			}
			m.answer(c)
			m.mu.Lock()
			leads := m.lead == c
			if leads {
				m.lead = nil
			}
			m.mu.Unlock()
			if !leads {
				return
			}
		}
	}()
}

// look has another goroutine lead when the one that does is busy with the same
// call as at the last look. There are looks only while there are calls.
func (m *mediator) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looking = m.lead != nil && m.lead != m.seen; m.looking {
		m.seen = m.lead
		time.AfterFunc(patience, m.look)
		return
	}
	m.passOn(m.lead)
}

// passOn has another goroutine lead, if that which is busy with c does. m.mu is
// held.
func (m *mediator) passOn(c *request) {
	if c != nil && m.lead == c {
		m.lead, m.seen = nil, nil
		m.hire()
	}
}

// next waits for a call; nil is the end.
func (m *mediator) next() *request {
	for short := 0; ; {
		select {
		case <-m.over:
			return nil
		default:
		}
		p := []unix.PollFd{{Fd: int32(m.queue.fd), Events: unix.POLLIN}, {Fd: int32(m.stop[0]), Events: unix.POLLIN}}
		if _, err := unix.Poll(p, -1); err != nil {
			if short++; passing(err) && short < attempts {
				time.Sleep(time.Millisecond)
			} else if err != unix.EINTR {
				m.finish(fmt.Errorf("poll: %w", err))
			}
			continue
		}
		short = 0
		switch {
		case p[1].Revents != 0:
			m.finish(nil)
		case p[0].Revents&unix.POLLIN != 0:
			c := &request{}
			got, err := m.queue.receive(&c.notification)
			if err != nil {
				m.finish(fmt.Errorf("receiving a socket call: %w", err))
			}
			if got {
				c.from = caller{int(c.pid)}
				m.mu.Lock()
				m.open[c.id] = struct{}{}
				if m.lead = c; !m.looking {
					m.looking, m.seen = true, c
					time.AfterFunc(patience, m.look)
				}
				m.mu.Unlock()
				return c
			}
		case p[0].Revents != 0: // the last process with the filter is gone
			m.finish(nil)
		}
	}
}

// answer decides a call and gives it its answer.
func (m *mediator) answer(c *request) {
	if m.watcher != nil && m.watcher.Watch(&Call{m, c}) {
		return
	}
	a := refused(unix.EAGAIN)
	if m.busy.Add(1) <= maxBusy {
		a = m.decide(c)
	}
	if m.watcher != nil && a.errno != 0 {
		m.watcher.Refused(&Call{m, c}, a.errno)
	}
	m.respond(c.id, a)
	c.drop()
	m.busy.Add(-1)
}

func (m *mediator) respond(id uint64, a answer) {
	m.mu.Lock()
	_, waits := m.open[id]
	delete(m.open, id)
	var err error
	if waits { // else it was told that this is the end
		err = m.queue.send(id, a)
	}
	m.mu.Unlock()
	if err != nil {
		m.finish(err)
	}
}
