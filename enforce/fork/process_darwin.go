package fork

import (
	"fmt"
	"os"
	"syscall"
)

// nextOwn waits for the command. waitid(2) with WNOWAIT, by which Linux looks
// before it collects, reports a stopped process over and over here, so the pid is
// free for the moment between wait4(2) and the lock. macOS gives pids out one
// after the other, up to 99999: this one does not come again so soon.
func (p *Process) nextOwn() (Event, error) {
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

// There is no keeper here.
func (p *Process) next() (Event, error) { return Event{}, ErrKeeperLost }
func (p *Process) send(message) error   { return os.ErrProcessDone }
func (p *Process) hungUp() bool         { return true }
func (p *Process) close() error         { return nil }

// Memory is for the Steps of Linux.
type Memory struct{}

// CanForward says that Command.Forward works with a keeper here.
const CanForward = false

func (p *Process) endForward() {}

// Forwarded is 0 here.
func (p *Process) Forwarded() syscall.Signal { return 0 }
