package fork

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// EventKind tells events apart.
type EventKind uint32

const (
	Stopped  EventKind = iota + 1 // the command was stopped by Event.Signal
	Exited                        // the command ended with Event.Status
	Emptied                       // nothing is left of the session; the last event
	TimedOut                      // the command was asked to end, by Command.Limit
)

// message travels between caller and keeper, one packet each. The keeper's are events
// and msgStarted.
type message struct {
	kind EventKind
	arg  uint32 // of Stopped the signal, of Exited the wait status and killedToo, of Emptied Event.Killed
}

// killedToo says, beside a wait status, that the killing had begun.
const killedToo = 1 << 16

const (
	msgStarted = TimedOut + 1 + iota // arg: the command's pid
	msgGo                            // to the keeper: the caller is ready for the command to start
	msgSignal                        // to the keeper: arg is the signal for the command
	msgKill                          // to the keeper
)

// Event is something that happened to a started command.
type Event struct {
	Kind   EventKind
	Status syscall.WaitStatus // Exited
	Signal syscall.Signal     // Stopped
	Killed int                // Emptied: processes that had to be killed; Exited: 1 if the session is killed
}

// Process is a started command.
type Process struct {
	Pid       int // of the command
	KeeperPid int // of the keeper, 0 on macOS

	ended  bool // the last event was delivered
	exited bool // so was the command's end
	keep   bool // what the command leaves goes on
	stuck  bool // the start does not come to its end

	limit Limit
	began time.Time // when the command did, where there is a limit

	forwarding bool // the caller's signals go to the command

	beside int          // what Next watches beside the keeper
	ready  func(r bool) // nil for none

	mu   sync.Mutex // guards what follows
	conn int        // the caller's end of the keeper's connection, or -1

	// On macOS:
	gone bool        // the command was waited for
	late atomic.Bool // the limit was reached
	last []Event     // what is to be told yet, once it is gone
}

// Next waits for the next event. After Emptied it returns io.EOF. On
// macOS Emptied follows Exited at once and only means the command itself.
// A keeper that vanished is ErrKeeperLost. os.ErrDeadlineExceeded says that the
// keeper should long have told of the end, by its Limit or after the command's,
// and has not: it is stopped, or something can't be killed. Signals are not
// passed on any more then. One goroutine at a time may call Next; the other
// methods may be called beside it.
func (p *Process) Next() (Event, error) {
	switch {
	case p.ended:
		return Event{}, io.EOF
	case p.KeeperPid != 0:
		return p.next()
	case !p.gone:
		if ev, err := p.nextOwn(); err != nil || ev.Kind == Stopped {
			return ev, err
		}
	}
	ev := p.last[0]
	p.last = p.last[1:]
	p.ended = len(p.last) == 0
	return ev, nil
}

// Beside has Next call ready once fd can be read, or with false once it never will be.
// It saves a thread that would wait for that. Linux only.
func (p *Process) Beside(fd int, ready func(readable bool)) {
	p.beside, p.ready = fd, ready
}

// Signal sends sig to the command, and never to another process: after the
// command's end it does nothing or returns os.ErrProcessDone.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.KeeperPid != 0 {
		return p.send(message{msgSignal, uint32(sig)})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return os.ErrProcessDone
	}
	return syscall.Kill(p.Pid, sig)
}

// Kill asks the keeper to kill the whole session; Emptied follows. Without a
// keeper it kills the command.
func (p *Process) Kill() error {
	if p.KeeperPid == 0 {
		return p.Signal(syscall.SIGKILL)
	}
	return p.send(message{kind: msgKill})
}

// Forwarding reports whether the signals of Command.Forward are passed on.
func (p *Process) Forwarding() bool { return p.forwarding }

// EndForward has the caller handle itself what Command.Forward names, and what has come
// of it and was not passed on.
func (p *Process) EndForward() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endForward(false)
}

// Over reports whether the keeper is gone, or without one the command: whoever
// stops need not wait for more.
func (p *Process) Over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.KeeperPid == 0 {
		return p.gone
	}
	return p.hungUp()
}

// Close drops the connection. A keeper without Keep then kills what is left
// of the session; to know when that is done, call Kill and wait for Emptied
// first.
func (p *Process) Close() error {
	if p.KeeperPid == 0 {
		return nil
	}
	return p.close()
}

// startClock begins to count the time of a command; one that has no keeper to do so is
// asked to end, and then killed. What has ended by then gets no signal.
func (p *Process) startClock(c *Command) {
	p.limit, p.began = c.Limit, time.Now()
	if p.KeeperPid != 0 || p.limit.Time <= 0 {
		return
	}
	time.AfterFunc(p.limit.Time, func() {
		p.late.Store(true)
		_ = p.Signal(syscall.SIGTERM)
		_ = p.Signal(syscall.SIGCONT)
		if p.limit.Kill > 0 {
			time.AfterFunc(p.limit.Kill, func() { _ = p.Kill() })
		}
	})
}

// nextOwn waits until a command that is this process's own child stops or ends.
// waitid(2) with WNOWAIT, by which one could look before collecting, reports a stopped
// process over and over on macOS: so the pid is free for the moment between wait4(2) and
// the lock. Pids are given out one after the other: this one does not come again so soon.
func (p *Process) nextOwn() (Event, error) {
	ws, err := wait4(p.Pid, syscall.WUNTRACED)
	if err != nil {
		return Event{}, fmt.Errorf("wait4: %w", err)
	}
	// On macOS WaitStatus.Stopped takes a stop by SIGSTOP for a continuation.
	if ws&0x7f == 0x7f {
		return Event{Kind: Stopped, Signal: syscall.Signal(ws >> 8)}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	if p.late.Load() {
		p.last = append(p.last, Event{Kind: TimedOut})
	}
	p.last = append(p.last, Event{Kind: Exited, Status: ws}, Event{Kind: Emptied})
	return Event{}, nil
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
