package broker

import (
	"time"

	"golang.org/x/sys/unix"
)

// A call that waits is tried again after minPause, then twice that and so on
// up to maxPause; sockets of the internet say themselves when they are ready.
// A pending signal is noticed after maxPause at the latest.
const (
	minPause = time.Millisecond
	maxPause = 20 * time.Millisecond
)

// wait tries a call again until it has an answer.
func (m *mediator) wait(c *request, w *waiter) answer {
	m.mu.Lock()
	m.passOn(c)
	m.mu.Unlock()
	var deadline time.Time
	if tv, err := unix.GetsockoptTimeval(w.sock.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err == nil && tv.Nano() > 0 {
		deadline = time.Now().Add(time.Duration(tv.Nano()))
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if !m.pause(w, pause) {
			return refused(unix.EINTR)
		}
		a := m.attempt(c, w)
		switch {
		case !a.deferred:
			return a
		case !deadline.IsZero() && time.Now().After(deadline):
			if w.sock.domain == unix.AF_UNIX {
				return refused(unix.EAGAIN)
			}
			return refused(unix.EINPROGRESS)
		case c.from.signalled():
			return refused(restart)
		}
	}
}

// pause lets time pass; false is the end of serving.
func (m *mediator) pause(w *waiter, d time.Duration) bool {
	if w.sock.domain == unix.AF_UNIX {
		time.Sleep(d)
	} else {
		p := []unix.PollFd{{Fd: int32(w.sock.fd), Events: unix.POLLOUT}}
		unix.Poll(p, int(maxPause/time.Millisecond))
	}
	select {
	case <-m.over:
		return false
	default:
		return true
	}
}

// signalled reports whether a signal waits for the caller, which would have
// interrupted its call.
func (c caller) signalled() bool {
	s, err := c.status()
	return err == nil && s.pending&^s.blocked&^s.ignored != 0
}
