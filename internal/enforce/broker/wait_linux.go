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
func (b *Broker) until(fds []unix.PollFd, d time.Duration) bool {
	w := &wait{fds, make(chan struct{})}
	b.mu.Lock()
	if b.isOver() {
		b.mu.Unlock()
		return false
	}
	b.waiting[w] = true
	_, _ = unix.Write(b.stop[1], []byte{0}) // if the pipe is full, it wakes await anyway
	b.mu.Unlock()
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
	case <-b.over:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, w)
	return !b.isOver()
}

// polled returns what await polls: the queue, the pipe, and then the descriptors of all waits.
func (b *Broker) polled() (polls []unix.PollFd, waits []*wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	polls = []unix.PollFd{{Fd: int32(b.queue.fd)}, {Fd: int32(b.stop[0]), Events: unix.POLLIN}}
	for w := range b.waiting {
		waits = append(waits, w)
		polls = append(polls, w.fds...)
	}
	return polls, waits
}

// wake ends the waits whose descriptors have events.
func (b *Broker) wake(polls []unix.PollFd, waits []*wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range waits {
		mine := polls[:len(w.fds)]
		polls = polls[len(w.fds):]
		got := false
		for i := range mine {
			got = got || mine[i].Revents != 0
		}
		if got && b.waiting[w] {
			copy(w.fds, mine)
			delete(b.waiting, w)
			close(w.ready)
		}
	}
}
