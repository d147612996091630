package fork

import (
	"fmt"
	"math"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// next waits for the keeper's next event.
func (p *Process) next() (Event, error) {
	if !p.heard() {
		return Event{}, os.ErrDeadlineExceeded
	}
	m, err := p.receive()
	if err != nil {
		p.ended = true
		p.collectKeeper()
		return Event{}, err
	}
	ev := Event{Kind: m.kind}
	switch m.kind {
	case TimedOut:
	case Stopped:
		ev.Signal = syscall.Signal(m.arg)
	case Exited:
		p.exited, ev.Status, ev.Killed = true, syscall.WaitStatus(m.arg&^killedToo), int(m.arg/killedToo)
	case Emptied:
		p.ended, ev.Killed = true, int(m.arg)
	default:
		return Event{}, fmt.Errorf("the keeper sent %d, which is not a message", m.kind)
	}
	return ev, nil
}

// nextOwn waits for a command that is this process's own child. It looks
// first and collects under the lock, so that Signal never meets a reused pid.
func (p *Process) nextOwn() (Event, error) {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Event{}, fmt.Errorf("waitid: %w", err)
		}
		break
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(p.Pid, &ws, syscall.WNOHANG|syscall.WUNTRACED, nil); err != nil {
		return Event{}, fmt.Errorf("wait4: %w", err)
	}
	if ws.Stopped() {
		return Event{Kind: Stopped, Signal: ws.StopSignal()}, nil
	}
	return p.exitedOwn(ws), nil
}

// How long after it should have a keeper may tell of the end, before it is taken
// to be stopped, and how long once it was woken.
const (
	keeperTime = 2 * time.Second
	wakeTime   = time.Second
)

// heard waits until the keeper says something, or is gone. For what has a time it
// does not wait for ever: the keeper may be stopped, by somebody outside.
func (p *Process) heard() bool {
	var wait time.Duration
	switch {
	case p.exited && !p.keep:
		wait = grace + keeperTime
	case !p.exited && p.limit.Time > 0 && p.limit.Kill > 0:
		wait = time.Until(p.began.Add(p.limit.Time)) + p.limit.Kill + keeperTime
	default:
		_ = p.soon(unix.POLLIN)
		return true
	}
	if p.readable(wait) {
		return true
	}
	_ = syscall.Kill(p.KeeperPid, syscall.SIGCONT)
	if p.readable(wakeTime) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endForward()
	return false
}

// readable reports whether the keeper says something, or is gone, within d;
// below 0 that is for ever.
func (p *Process) readable(d time.Duration) bool { return p.polled(unix.POLLIN, d) }

// polled waits for events on the connection, or for its end.
func (p *Process) polled(events int16, d time.Duration) bool {
	if p.soon(events) {
		return true
	}
	end := time.Now().Add(d)
	for p.conn >= 0 {
		fds := [1]unix.PollFd{{Fd: int32(p.conn), Events: events}}
		ms := -1
		if d >= 0 {
			ms = int(min(max(time.Until(end), 0)/time.Millisecond+1, math.MaxInt32))
		}
		n, err := unix.Poll(fds[:], ms)
		switch {
		case err == nil && n > 0:
			return true
		case err != nil && err != unix.EINTR:
			return true // what comes next waits as well
		}
		if d >= 0 && time.Until(end) <= 0 {
			return false
		}
	}
	return true // as a read would say
}

// hungUp reports whether the keeper is gone. p.mu is held.
func (p *Process) hungUp() bool {
	if p.conn < 0 {
		return true
	}
	fds := [1]unix.PollFd{{Fd: int32(p.conn)}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLHUP != 0
}

// soon is polled for the time that most starts, and many commands, take. Go's
// scheduler does not learn of it: to tell that would take a part of this time. Where
// there is one processor, other goroutines wait as long.
func (p *Process) soon(events int16) bool {
	fds := [1]unix.PollFd{{Fd: int32(p.conn), Events: events}}
	ts := unix.NsecToTimespec(3e6)
	n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return n == 1
}

// receive reads one message. A closed connection is ErrKeeperLost. When the
// keeper ends with one of our requests unread, ECONNRESET comes once, and before
// the last messages that it sent (unix_release_sock in the kernel).
func (p *Process) receive() (message, error) {
	var m message
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))
	for tries := 0; ; {
		n, err := syscall.Read(p.conn, buf)
		switch {
		case err == syscall.EINTR, err == syscall.ECONNRESET:
		case err == nil && n == len(buf):
			return m, nil
		case err == nil, err == syscall.EBADF, tries == sendTries:
			return m, ErrKeeperLost
		default: // for want of memory: the message is still there
			tries++
			time.Sleep(sendPause)
		}
	}
}

// collectKeeper collects the keeper after its last word. Its end closes the
// connection. One that does not come to that was stopped, by somebody outside: it
// is woken, and where that does not help it is left to init.
func (p *Process) collectKeeper() {
	p.spareKeeper()
	for _, d := range [...]time.Duration{keeperTime, wakeTime} {
		if p.polled(0, d) {
			p.waitKeeper()
			return
		}
		_ = syscall.Kill(p.KeeperPid, syscall.SIGCONT)
	}
}

// waitKeeper collects the keeper, which is about to end or did. Its end is told
// by a signal other than SIGCHLD, so that it is a "clone child" (wait4(2)).
func (p *Process) waitKeeper() {
	p.spareKeeper()
	for {
		if _, err := syscall.Wait4(p.KeeperPid, nil, unix.WALL, nil); err != syscall.EINTR {
			return
		}
	}
}

// send sends a message to the keeper; os.ErrProcessDone says that it is gone.
func (p *Process) send(m message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn < 0 {
		return os.ErrProcessDone
	}
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))
	for tries := 0; ; tries++ {
		err := unix.Sendto(p.conn, buf, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, nil)
		switch err {
		case unix.EPIPE, unix.ECONNRESET:
			return os.ErrProcessDone
		case unix.EINTR, unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
			if tries < sendTries {
				time.Sleep(sendPause)
				continue
			}
		}
		return err
	}
}

// How often and how fast a message is sent or read again for which the kernel had
// no memory, or the keeper no room: for a second.
const (
	sendTries = 1000
	sendPause = time.Millisecond
)

func (p *Process) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn < 0 {
		return nil
	}
	p.endForward()
	if p.ended {
		p.collectKeeper() // init does not collect it everywhere: in a container there may be none
	}
	err := syscall.Close(p.conn)
	p.conn = -1
	return err
}
