package track

import (
	"errors"
	"os"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
)

// news is what is known of a running session.
type news struct {
	exited  bool // the command ended
	emptied bool // nothing is left, says the keeper
	lost    bool // the keeper is gone without a word
	killed  int  // processes that the keeper had to kill
}

func (s *Session) learned() news {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// Next waits for the next event of the command. After fork.Emptied it returns
// io.EOF. fork.ErrKeeperLost says that somebody killed the keeper: Close then
// does what can still be done.
func (s *Session) Next() (fork.Event, error) {
	if s.proc == nil {
		return fork.Event{}, errors.New("the session has no command")
	}
	ev, err := s.proc.Next()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, fork.ErrKeeperLost):
		s.news.lost = true
	case err != nil:
	case ev.Kind == fork.Exited:
		s.news.exited = true
	case ev.Kind == fork.Emptied:
		s.news.emptied, s.news.killed = true, ev.Killed
	}
	return ev, err
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
func (s *Session) Signal(sig syscall.Signal) error {
	if s.proc == nil {
		return os.ErrProcessDone
	}
	return s.proc.Signal(sig)
}

// Forwarding tells whether the signals of fork.Command.Forward are passed on.
func (s *Session) Forwarding() bool { return s.proc != nil && s.proc.Forwarding() }

// Kill begins to kill the whole session. It does not wait; Wait and Close do.
func (s *Session) Kill() error {
	if s.proc == nil {
		return os.ErrProcessDone
	}
	return s.kill()
}

// Detach leaves the session running when the command ends or this process
// goes away, as Options.Keep does.
func (s *Session) Detach() error {
	s.opts.Keep = true
	if s.proc == nil {
		return nil
	}
	return s.proc.Detach()
}
