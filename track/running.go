package track

import (
	"errors"
	"io"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
)

// news is what is known of a running session.
type news struct {
	timedOut bool // the command was asked to end
	exited   bool // the command ended
	emptied  bool // nothing is left, says the keeper
	lost     bool // the keeper is gone without a word
	killed   int  // processes that the keeper had to kill
}

// Next waits for the next event of the command. After fork.Emptied it returns
// io.EOF. fork.ErrKeeperLost says that somebody killed the keeper: Close then
// does what can still be done.
func (s *Session) Next() (fork.Event, error) {
	ev, err := s.next()
	switch {
	case errors.Is(err, fork.ErrKeeperLost):
		s.news.lost = true
	case err != nil:
	case ev.Kind == fork.TimedOut:
		s.news.timedOut = true
	case ev.Kind == fork.Exited:
		s.news.exited = true
		s.noteReached()
	case ev.Kind == fork.Emptied:
		s.news.emptied, s.news.killed = true, ev.Killed
	}
	return ev, err
}

// next is Next of the process, and of a keeper that is gone what it wrote down: a
// message is lost where this process was stopped for long, and where the kernel
// had no memory for it. A keeper that could not even say that the command runs has
// killed it, so that its status would mislead.
func (s *Session) next() (fork.Event, error) {
	if s.tail == nil {
		ev, err := s.proc.Next()
		if !errors.Is(err, fork.ErrKeeperLost) {
			return ev, err
		}
		w := readWord(s.state)
		if !w.empty() || s.proc.Pid == 0 {
			return ev, err
		}
		if w.state.TimedOut != 0 && !s.news.timedOut {
			s.tail = append(s.tail, fork.Event{Kind: fork.TimedOut})
		}
		if !s.news.exited {
			s.tail = append(s.tail, fork.Event{Kind: fork.Exited, Status: syscall.WaitStatus(w.state.WaitStatus)})
		}
		s.tail = append(s.tail, fork.Event{Kind: fork.Emptied, Killed: int(w.state.Killed)})
	}
	if len(s.tail) == 0 {
		return fork.Event{}, io.EOF
	}
	ev := s.tail[0]
	s.tail = s.tail[1:]
	return ev, nil
}

// Wait waits for the command's end and returns its status. What the command
// left behind may still run: see Close.
func (s *Session) Wait() (syscall.WaitStatus, error) {
	for {
		ev, err := s.Next()
		if err != nil {
			return 0, err
		}
		if ev.Kind == fork.Exited {
			return ev.Status, nil
		}
	}
}

// Signal sends sig to the command's first process.
func (s *Session) Signal(sig syscall.Signal) error { return s.proc.Signal(sig) }

// Over reports whether the keeper is gone: there is nothing left to stop for.
func (s *Session) Over() bool { return s.proc.Over() }

// EndForward has this process handle its signals itself again.
func (s *Session) EndForward() { s.proc.EndForward() }

// Forwarded is the last signal that was passed on for fork.Command.Forward, or 0.
func (s *Session) Forwarded() syscall.Signal { return s.proc.Forwarded() }

// Forwarding reports whether the signals of fork.Command.Forward are passed on.
func (s *Session) Forwarding() bool { return s.proc.Forwarding() }

// Kill begins to kill the whole session. It does not wait; Wait and Close do.
func (s *Session) Kill() error { return s.kill() }
