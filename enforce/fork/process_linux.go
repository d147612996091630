package fork

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func (p *Process) next() (Event, error) {
	if p.KeeperPid == 0 {
		return p.nextOwn()
	}
	m, err := p.receive()
	if err != nil {
		p.ended = true
		p.waitKeeper()
		return Event{}, err
	}
	switch m.kind {
	case msgStopped:
		return Event{Kind: Stopped, Signal: syscall.Signal(m.arg)}, nil
	case msgContinued:
		return Event{Kind: Continued}, nil
	case msgExited:
		return Event{Kind: Exited, Status: syscall.WaitStatus(m.arg)}, nil
	case msgEmpty:
		p.ended = true
		return Event{Kind: Emptied, Killed: int(m.arg)}, nil
	}
	return Event{}, fmt.Errorf("the keeper said %d, which means nothing", m.kind)
}

// nextOwn waits for a command that is this process's own child. It looks
// first and collects under the lock, so that signal never meets a reused pid.
func (p *Process) nextOwn() (Event, error) {
	if p.gone {
		p.ended = true
		return Event{Kind: Emptied}, nil
	}
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
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
	if _, err := syscall.Wait4(p.Pid, &ws, syscall.WNOHANG|syscall.WUNTRACED|syscall.WCONTINUED, nil); err != nil {
		return Event{}, fmt.Errorf("wait4: %w", err)
	}
	switch {
	case ws.Stopped():
		return Event{Kind: Stopped, Signal: ws.StopSignal()}, nil
	case ws.Continued():
		return Event{Kind: Continued}, nil
	}
	p.gone = true
	return Event{Kind: Exited, Status: ws}, nil
}

// receive reads one message. A closed connection is ErrKeeperLost. When the
// keeper ends with one of our requests unread, ECONNRESET comes once, and before
// the last messages that it sent (unix_release_sock in the kernel).
func (p *Process) receive() (message, error) {
	var m message
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))
	for {
		n, err := syscall.Read(p.conn, buf)
		switch {
		case err == syscall.EINTR, err == syscall.ECONNRESET:
		case err == nil && n == len(buf):
			return m, nil
		default:
			return m, ErrKeeperLost
		}
	}
}

// waitKeeper collects the keeper, which is about to end or did.
func (p *Process) waitKeeper() {
	for {
		if _, err := syscall.Wait4(p.KeeperPid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

func (p *Process) signal(sig syscall.Signal) error {
	if p.KeeperPid != 0 {
		return p.send(message{kind: msgSignal, arg: uint32(sig)})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return errDone
	}
	return syscall.Kill(p.Pid, sig)
}

func (p *Process) kill() error {
	if p.KeeperPid == 0 {
		return p.signal(syscall.SIGKILL)
	}
	return p.send(message{kind: msgKill})
}

func (p *Process) detach() error {
	if p.KeeperPid == 0 {
		return nil
	}
	return p.send(message{kind: msgDetach})
}

func (p *Process) send(m message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn < 0 {
		return errDone
	}
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))
	err := unix.Sendto(p.conn, buf, unix.MSG_NOSIGNAL, nil)
	if err == unix.EPIPE || err == unix.ECONNRESET {
		return errDone
	}
	return err
}

func (p *Process) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn < 0 {
		return nil
	}
	p.endForward()
	err := syscall.Close(p.conn)
	p.conn = -1
	if p.ended {
		p.waitKeeper() // init does not collect it everywhere: in a container there may be none
	}
	return err
}
