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

// EventKind is the kind of an event.
type EventKind uint32

const (
	Stopped  EventKind = iota + 1 // the command was stopped by Event.Signal
	Exited                        // the command ended with Event.Status
	Emptied                       // nothing is left of the session; the last event
	TimedOut                      // the command was asked to end, by Command.Limit
)

// message is one packet between caller and keeper. The keeper sends events and msgStarted.
type message struct {
	kind EventKind
	arg  uint32 // Stopped: the signal; Exited: the wait status and killedToo; Emptied: Event.Killed
}

// killedToo in a wait status says that the killing had begun.
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
	Killed int                // Emptied: how many processes were killed; Exited: 1 if the session is being killed
}

// Process is a started command.
type Process struct {
	Pid       int // of the command
	KeeperPid int // of the keeper, 0 on macOS

	ended  bool // the last event was delivered
	exited bool // the command's end was delivered
	keep   bool // what the command leaves keeps running
	stuck  bool // the start does not finish

	limit Limit
	began time.Time // when the command began, for limit

	beside int          // what Next watches besides the keeper
	ready  func(r bool) // nil for none
	later  func()       // nil for none

	mu   sync.Mutex // guards what follows
	conn int        // the caller's end of the keeper's connection, or -1

	waking sync.Mutex // guards what follows
	spared bool       // the keeper gets no signals any more

	// On macOS:
	gone bool        // the command was reaped
	late atomic.Bool // the limit was reached
	last []Event     // events that are still to be delivered once it is gone
}

// Next waits for the next event. After Emptied it returns io.EOF. On macOS Emptied comes right
// after Exited and is only about the command itself. If the keeper vanished, Next returns
// ErrKeeperLost. It returns os.ErrDeadlineExceeded if the keeper should have reported the end
// long ago, because of Limit or after the command's end. Then the keeper is stopped, or
// something can't be killed. Only one goroutine at a time may call Next. The other methods may be
// called meanwhile.
func (p *Process) Next() (Event, error) {
	switch {
	case p.ended:
		return Event{}, io.EOF
	case p.KeeperPid != 0:
		return p.next()
	case !p.gone:
		if ev, err := p.nextChild(); err != nil || ev.Kind == Stopped {
			return ev, err
		}
	}
	ev := p.last[0]
	p.last = p.last[1:]
	p.ended = len(p.last) == 0
	return ev, nil
}

// Beside makes Next call ready once fd can be read, or with false once it never will be. That
// saves a thread that waits for it. Linux only.
func (p *Process) Beside(fd int, ready func(readable bool)) {
	p.beside = fd
	p.ready = ready
}

// Later makes Next call f once nothing has happened for a moment, or before it calls what Beside
// has. Short commands end before that. Linux only.
func (p *Process) Later(f func()) { p.later = f }

// Signal sends sig to the command, and never to another process: after the
// command's end it does nothing or returns os.ErrProcessDone. It wakes a keeper
// that was stopped.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.KeeperPid != 0 {
		err := p.send(message{msgSignal, uint32(sig)})
		p.wakeKeeper()
		return err
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

// Over reports whether the keeper, or without one the command, is gone, so that there is
// nothing more to wait for.
func (p *Process) Over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.KeeperPid == 0 {
		return p.gone
	}
	return p.hungUp()
}

// Close closes the connection. A keeper without Keep then kills what is left of the session. To
// know when that is done, call Kill and wait for Emptied first.
func (p *Process) Close() error {
	if p.KeeperPid == 0 {
		return nil
	}
	return p.close()
}

// startClock starts the time limit. Without a keeper it also asks the command to end, and then
// kills it. A command that has ended gets no signal.
func (p *Process) startClock(c *Command) {
	p.limit = c.Limit
	p.began = time.Now()
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

// nextChild waits until a command that is this process's own child stops or ends. waitid(2) with
// WNOWAIT could look without reaping, but on macOS it reports a stopped process over and over.
// So the pid is free for a moment between wait4(2) and the lock. The system assigns pids in
// sequence, so this one is not reused so soon.
func (p *Process) nextChild() (Event, error) {
	ws, err := wait4(p.Pid, syscall.WUNTRACED)
	if err != nil {
		return Event{}, fmt.Errorf("wait4: %w", err)
	}
	// On macOS WaitStatus.Stopped mistakes a stop by SIGSTOP for a continuation.
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
