package enforce

import (
	"time"

	"golang.org/x/sys/unix"
)

// maxWaiting is how many calls may wait at a time: each holds descriptors.
const maxWaiting = 256

// A call that waits is tried again after minPause, then twice that and so on
// up to maxPause; sockets of the internet say themselves when they are ready.
// A pending signal is noticed after maxPause at the latest.
const (
	minPause = time.Millisecond
	maxPause = 20 * time.Millisecond
)

// wait keeps a call for later.
func (m *mediator) wait(w *waiter, now time.Time) {
	w.pause = minPause
	w.next = now.Add(w.pause)
	if tv, err := unix.GetsockoptTimeval(w.sock.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err == nil {
		if d := time.Duration(tv.Nano()); d > 0 {
			w.deadline = now.Add(d)
		}
	}
	if w.sock.domain != unix.AF_UNIX {
		ev := unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLONESHOT, Fd: int32(w.sock.fd)}
		w.watched = unix.EpollCtl(m.events, unix.EPOLL_CTL_ADD, w.sock.fd, &ev) == nil
	}
	m.waiting[w.id] = w
}

// timeout is how long the next wait for events may take, in milliseconds.
func (m *mediator) timeout() int {
	if len(m.waiting) == 0 {
		return -1
	}
	now := time.Now()
	least := maxPause
	for _, w := range m.waiting {
		least = min(least, w.next.Sub(now))
	}
	return int(max(0, least+time.Millisecond-1) / time.Millisecond)
}

// markReady remembers that a socket that was waited for has become ready.
func (m *mediator) markReady(fd int32) {
	for _, w := range m.waiting {
		if int32(w.sock.fd) == fd {
			w.ready = true
		}
	}
}

// continueWaiting looks after the calls that wait.
func (m *mediator) continueWaiting() {
	if len(m.waiting) == 0 {
		return
	}
	now := time.Now()
	for id, w := range m.waiting {
		if !w.ready && now.Before(w.next) {
			continue
		}
		a := m.tryAgain(w, now)
		if a.deferred {
			w.ready = false
			w.pause = min(2*w.pause, maxPause)
			w.next = now.Add(w.pause)
			continue
		}
		m.respond(id, a)
		delete(m.waiting, id)
		if w.watched {
			unix.EpollCtl(m.events, unix.EPOLL_CTL_DEL, w.sock.fd, nil)
		}
		w.close()
	}
}

func (m *mediator) tryAgain(w *waiter, now time.Time) answer {
	if !m.valid(w.id) {
		return refused(unix.EINTR) // killed, or interrupted: nobody hears it
	}
	a := asCaller(w.from, func() answer {
		if w.file < 0 {
			if errno := m.judge(w); errno != 0 { // an abstract name may be another's by now
				return refused(errno)
			}
		}
		return w.try()
	})
	switch {
	case !a.deferred:
	case !w.deadline.IsZero() && now.After(w.deadline):
		if w.sock.domain == unix.AF_UNIX {
			return refused(unix.EAGAIN)
		}
		return refused(unix.EINPROGRESS)
	case w.from.signalled():
		return refused(restart)
	}
	return a
}

// signalled says whether a signal waits for the caller, which would have
// interrupted its call.
func (c caller) signalled() bool {
	s, err := c.status()
	return err == nil && s.pending&^s.blocked&^s.ignored != 0
}
