package broker

import (
	"time"

	"golang.org/x/sys/unix"
)

// This file lets goroutines wait for descriptors without a thread for each: one thread polls for
// all of them.

// wait is a goroutine that waits for one of its descriptors.
type wait struct {
	fds   []unix.PollFd
	ready chan struct{} // closed by wake
}

// until waits until there are events on one of the descriptors, for at most d, or without a
// limit for 0. It fills in Revents. It returns false once serving is over.
func (m *Broker) until(fds []unix.PollFd, d time.Duration) bool {
	w := &wait{fds, make(chan struct{})}
	m.mu.Lock()
	if m.isOver() {
		m.mu.Unlock()
		return false
	}
	m.waiting[w] = true
	_, _ = unix.Write(m.stop[1], []byte{0}) // if the pipe is full, it wakes await anyway
	m.mu.Unlock()
	var late <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.ready:
		return true
	case <-late:
	case <-m.over:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, w)
	return !m.isOver()
}

// polled returns what await polls: the queue, the pipe, and then the descriptors of all waits.
func (m *Broker) polled() (polls []unix.PollFd, waits []*wait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	polls = []unix.PollFd{{Fd: int32(m.queue.fd)}, {Fd: int32(m.stop[0]), Events: unix.POLLIN}}
	for w := range m.waiting {
		waits = append(waits, w)
		polls = append(polls, w.fds...)
	}
	return polls, waits
}

// wake ends the waits whose descriptors have events.
func (m *Broker) wake(polls []unix.PollFd, waits []*wait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range waits {
		own := polls[:len(w.fds)]
		polls = polls[len(w.fds):]
		got := false
		for i := range own {
			got = got || own[i].Revents != 0
		}
		if got && m.waiting[w] {
			copy(w.fds, own)
			delete(m.waiting, w)
			close(w.ready)
		}
	}
}
