package fork

import (
	"io"
	"os"
	"sync"
	"syscall"
)

// EventKind tells events apart.
type EventKind uint32

// The events of a process.
const (
	Stopped   EventKind = iota + 1 // the command was stopped by Event.Signal
	Continued                      // the command goes on
	Exited                         // the command ended with Event.Status
	Emptied                        // nothing is left of the session; the last event
)

// Event is something that happened to a started command.
type Event struct {
	Kind   EventKind
	Status syscall.WaitStatus // Exited
	Signal syscall.Signal     // Stopped
	Killed int                // Emptied: processes that had to be killed
}

// Process is a started command.
type Process struct {
	Pid       int // of the command
	KeeperPid int // of the keeper, 0 without one

	ended bool // the last event was delivered

	forwarding bool // the caller's signals go to the command
	forwarder  forwarder

	mu   sync.Mutex // guards what follows
	conn int        // the caller's end of the keeper's connection, or -1
	gone bool       // without a keeper: the command was waited for
}

// Next waits for the next event. After Emptied it returns io.EOF. Without a
// keeper, Emptied follows Exited at once and only means the command itself.
// A keeper that vanished is ErrKeeperLost. One goroutine at a time may call
// Next; the other methods may be called beside it.
func (p *Process) Next() (Event, error) {
	if p.ended {
		return Event{}, io.EOF
	}
	return p.next()
}

// Signal sends sig to the command, and never to another process: after the
// command's end it does nothing or returns os.ErrProcessDone.
func (p *Process) Signal(sig syscall.Signal) error {
	return p.signal(sig)
}

// Kill asks the keeper to kill the whole session; Emptied follows. Without a
// keeper it kills the command.
func (p *Process) Kill() error { return p.kill() }

// Detach makes the keeper leave the session alone when the command ends or
// the caller goes away, as Keeper.Keep does.
func (p *Process) Detach() error { return p.detach() }

// Close drops the connection. A keeper without Keep then kills what is left
// of the session; to know when that is done, call Kill and wait for Emptied
// first.
func (p *Process) Close() error { return p.close() }

var errDone = os.ErrProcessDone
