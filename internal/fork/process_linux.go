package fork

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/procfs"
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
		p.exited = true
		ev.Status = syscall.WaitStatus(m.arg &^ killedToo)
		ev.Killed = int(m.arg / killedToo)
	case Emptied:
		p.ended = true
		ev.Killed = int(m.arg)
	default:
		return Event{}, fmt.Errorf("the keeper sent %d, which is not a message", m.kind)
	}
	return ev, nil
}

// keeperTime is how late a keeper may report the end before it counts as stopped by somebody
// outside. wakeTime is how long it gets after it was woken.
const (
	keeperTime = 2 * time.Second
	wakeTime   = time.Second
)

// heard waits until the keeper sends something or is gone. If there is a time limit, it returns
// false when the keeper is overdue.
func (p *Process) heard() bool {
	switch {
	case p.exited && !p.keep:
		if p.wakes(unix.POLLIN, longestGrace+keeperTime) {
			return true
		}
	case !p.exited && p.limit.Time > 0 && p.limit.Kill > 0:
		if p.wakes(unix.POLLIN, time.Until(p.began.Add(p.limit.Time))+p.limit.Kill+keeperTime) {
			return true
		}
	default:
		return p.ready == nil && p.later == nil || p.polled(unix.POLLIN, -1) // a read waits as well
	}
	return false
}

// wakes is polled with a time limit. After that it wakes the keeper and polls again.
func (p *Process) wakes(events int16, d time.Duration) bool {
	if p.polled(events, d) {
		return true
	}
	_ = syscall.Kill(p.KeeperPid, syscall.SIGCONT)
	return p.polled(events, wakeTime)
}

// aMoment is when Next calls what Later has, in milliseconds.
const aMoment = 10

// polled reports whether, within d, there are events on the connection or it was closed. A
// negative d means without a limit. If events are to be read, it also watches Beside's
// descriptor.
func (p *Process) polled(events int16, d time.Duration) bool {
	start := time.Now()
	end := start.Add(d)
	for p.conn >= 0 {
		ms := -1
		if d >= 0 {
			left := max(time.Until(end), 0) + time.Millisecond - 1
			ms = int(min(left/time.Millisecond, math.MaxInt32))
		}
		soon := events != 0 && p.later != nil
		if soon && (ms < 0 || ms > aMoment) {
			ms = aMoment
		}
		fds := []unix.PollFd{{Fd: int32(p.conn), Events: events}, {Fd: -1, Events: unix.POLLIN}}
		if events != 0 && p.ready != nil {
			fds[1].Fd = int32(p.beside)
		}
		n, err := unix.Poll(fds, ms)
		failed := err != nil && err != unix.EINTR
		asked := fds[1].Revents&unix.POLLIN != 0 // it only hangs up when the command ends
		passed := fds[0].Revents == 0 && time.Since(start) >= aMoment*time.Millisecond
		if soon && (failed || asked || passed) {
			later := p.later
			p.later = nil
			later()
		}
		if got := fds[1].Revents; fds[1].Fd >= 0 && (got != 0 || failed) {
			ready := p.ready
			p.ready = nil
			ready(got&unix.POLLIN != 0 || failed) // if it can't be watched, the caller must read
		}
		switch {
		case n > 0 && fds[0].Revents == 0:
		case n > 0 || failed: // the next call waits as well
			return true
		case d >= 0 && time.Until(end) <= 0:
			return false
		}
	}
	return true // a read would report the end
}

// hungUp reports whether the keeper is gone. p.mu is held.
func (p *Process) hungUp() bool { return p.polled(0, 0) }

// receive reads one message, or returns ErrKeeperLost for a closed connection. After other
// errors it reads again. If the keeper ends without reading a request, the kernel once reports
// ECONNRESET before the keeper's last messages (unix_release_sock in the kernel).
func (p *Process) receive() (m message, err error) {
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))
	n := 0
	err = patiently(func() (err error) {
		n, err = syscall.Read(p.conn, buf)
		if err != nil && err != syscall.EBADF {
			err = syscall.EAGAIN
		}
		return err
	})
	if err != nil || n != len(buf) {
		return m, ErrKeeperLost
	}
	return m, nil
}

// send sends a message to the keeper. It returns os.ErrProcessDone if the keeper is gone.
func (p *Process) send(m message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn < 0 {
		return os.ErrProcessDone
	}
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))
	err := patiently(func() error { return unix.Sendto(p.conn, buf, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, nil) })
	if err == unix.EPIPE || err == unix.ECONNRESET {
		return os.ErrProcessDone
	}
	return err
}

// patiently repeats a call for a second if it is interrupted, or if the kernel lacks memory or
// the socket is full.
func patiently(call func() error) error {
	for tries := 0; ; tries++ {
		err := call()
		switch {
		case tries == 1000:
			return err
		case err == unix.EINTR:
		case err == unix.EAGAIN, err == unix.ENOBUFS, err == unix.ENOMEM:
			time.Sleep(time.Millisecond)
		default:
			return err
		}
	}
}

// wakeKeeper continues a keeper that was stopped.
func (p *Process) wakeKeeper() {
	p.waking.Lock()
	defer p.waking.Unlock()
	if !p.spared {
		_ = syscall.Kill(p.KeeperPid, syscall.SIGCONT)
	}
}

// spareKeeper stops wakeKeeper from signalling the keeper, since its pid is about to be free.
func (p *Process) spareKeeper() {
	p.waking.Lock()
	defer p.waking.Unlock()
	p.spared = true
}

// collectKeeper reaps the keeper after its last message. The keeper's end closes the
// connection. If it does not end, it was stopped, and is left to init.
func (p *Process) collectKeeper() {
	p.spareKeeper()
	if p.wakes(0, keeperTime) {
		p.waitKeeper()
	}
}

// waitKeeper reaps the keeper, which has ended or is about to. WALL is needed since its exit
// signal is not SIGCHLD, which makes it a "clone child" (wait4(2)).
func (p *Process) waitKeeper() {
	p.spareKeeper()
	_, _ = wait4(p.KeeperPid, unix.WALL)
}

func (p *Process) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn < 0 {
		return nil
	}
	if p.ended {
		p.collectKeeper() // in a container there may be no init to reap it
	}
	err := syscall.Close(p.conn)
	p.conn = -1
	return err
}

// OuterPid returns the number, in this process's PID namespace, of the keeper's child that has
// the number pid in the keeper's own one. It returns 0 if the child has ended.
func OuterPid(keeper, pid int) int {
	b, _ := files.ReadInto(fmt.Sprintf("/proc/%d/task/%d/children", keeper, keeper), make([]byte, 4096))
	for child := range strings.FieldsSeq(string(b)) {
		status, _ := procfs.StatusOf("/proc/" + child + "/status")
		if ids := status["NSpid"]; len(ids) > 0 && ids[len(ids)-1] == strconv.Itoa(pid) {
			outer, _ := strconv.Atoi(child)
			return outer
		}
	}
	return 0
}

// PathOf returns the kernel's path for an open file of this process (proc_pid_fd(5)), or "" if
// that is unknown.
func PathOf(fd int) string {
	path, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return path
}
