package fork

import (
	"fmt"
	"syscall"
)

// next waits for the command. waitid(2) with WNOWAIT, by which Linux looks
// before it collects, reports a stopped process over and over here, so the pid is
// free for the moment between wait4(2) and the lock. macOS gives pids out one
// after the other, up to 99999: this one does not come again so soon.
//
// wait4(2) does not report that a command goes on, so Continued never comes.
func (p *Process) next() (Event, error) {
	if p.gone {
		return p.lastOwn(), nil
	}
	ws, err := wait4(p.Pid, syscall.WUNTRACED)
	if err != nil {
		return Event{}, fmt.Errorf("wait4: %w", err)
	}
	// WaitStatus.Stopped takes a stop by SIGSTOP for a continuation.
	if ws&0x7f == 0x7f {
		return Event{Kind: Stopped, Signal: syscall.Signal(ws >> 8)}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exitedOwn(ws), nil
}

func wait4(pid, options int) (syscall.WaitStatus, error) {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &ws, options, nil)
		if err != syscall.EINTR {
			return ws, err
		}
	}
}

func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return errDone
	}
	return syscall.Kill(p.Pid, sig)
}

func (p *Process) kill() error   { return p.signal(syscall.SIGKILL) }
func (p *Process) detach() error { return nil }
func (p *Process) close() error  { return nil }

func (p *Process) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}
