package track

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/scan"
)

// news is what is known of a running session.
type news struct {
	timedOut, exited bool // the command was asked to end, and did
	emptied          bool // nothing is left, says the keeper
	lost             bool // the keeper is gone without a word
}

// Next waits for the next event of the command. After fork.Emptied, and without a
// keeper after fork.Exited, it returns io.EOF. fork.ErrKeeperLost says that somebody
// killed the keeper: Close then does what can still be done.
func (s *Session) Next() (ev fork.Event, err error) {
	if s.tail == nil {
		if ev, err = s.process.Next(); errors.Is(err, fork.ErrKeeperLost) {
			s.tail = s.lastWords()
		}
	}
	if s.tail != nil {
		if len(s.tail) == 0 {
			return fork.Event{}, io.EOF
		}
		ev, s.tail, err = s.tail[0], s.tail[1:], nil
	}
	switch {
	case err != nil:
		s.news.lost = errors.Is(err, fork.ErrKeeperLost)
	case ev.Kind == fork.TimedOut:
		s.news.timedOut = true
	case ev.Kind == fork.Exited:
		s.news.exited = true
	case ev.Kind == fork.Emptied && s.process.KeeperPid == 0:
		return fork.Event{}, io.EOF // the command has ended; nobody can say so of the session
	case ev.Kind == fork.Emptied:
		s.news.emptied = true
	}
	return ev, err
}

// Beside has Next watch something else: see fork.Process.Beside. It reports whether
// Next can.
func (s *Session) Beside(fd int, ready func(readable bool)) bool {
	if s.process.KeeperPid != 0 {
		s.process.Beside(fd, ready)
	}
	return s.process.KeeperPid != 0
}

// lastWords are the events that a keeper which is gone wrote down, nil if it did not
// end well: a message is lost where this process was stopped for long, and where the
// kernel had no memory for it. A keeper that could not even say that the command runs
// has killed it, so that its status would mislead.
func (s *Session) lastWords() (evs []fork.Event) {
	s.listen()
	if !s.empty() || s.process.Pid == 0 {
		return nil
	}
	w := s.word
	if w.TimedOut != 0 && !s.news.timedOut {
		evs = append(evs, fork.Event{Kind: fork.TimedOut})
	}
	if !s.news.exited {
		evs = append(evs, fork.Event{Kind: fork.Exited, Status: syscall.WaitStatus(w.WaitStatus)})
	}
	return append(evs, fork.Event{Kind: fork.Emptied, Killed: int(w.Killed)})
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

// Close ends the session. Unless it is to be kept, all that is left of it is
// killed; with proof that nothing is, it is removed from the store. When ctx
// is done before, the report names the survivors, and the session stays in the
// store for a later Reap.
func (s *Session) Close(ctx context.Context) (Report, error) {
	if s.file == nil {
		return Report{}, errors.New("the session is closed")
	}
	defer s.release()
	r := Report{ID: s.record.ID, Name: s.record.Name, Tracker: s.choice.Kind, Temp: s.record.Temp}
	s.listen()
	switch {
	case s.process == nil:
		r.prove("nothing was started")
	case s.opts.Keep && !s.news.emptied && !s.news.lost && !s.nothingLeft():
		r.Kept = true
		return r, s.process.Close()
	case s.news.emptied:
		s.proveEmpty(&r)
	default:
		_ = s.Kill() // a keeper that is gone shows soon
		if err := s.reap(ctx, &r); err != nil || r.Left() {
			return r, err
		}
		for err := error(nil); err == nil && r.Proof; { // the keeper is waited for
			_, err = s.Next()
		}
	}
	r.NotRemoved = s.forget(&r)
	return r, nil
}

// nothingLeft asks whether a session that is to be kept has anything to keep.
// The keeper writes it down right after the command's end.
func (s *Session) nothingLeft() bool {
	for try := 0; s.news.exited && try < 2; try++ {
		if s.listen(); s.empty() {
			s.news.emptied = true
			return true
		}
		time.Sleep(300 * time.Microsecond)
	}
	return false
}

func (s *Session) release() {
	if s.process != nil {
		_ = s.process.Close()
	}
	if s.watch != nil { // there is nothing to watch any more
		_, _ = s.watch.Write([]byte{scan.WordOver})
		_ = s.watch.Close()
	}
	s.close()
}

// Watch is the keeper of a session on macOS, where no process can adopt others: it waits
// beside the session, and calls end, until that reports that it is done, if the supervisor
// disappears without having said that the session is over. words is the pipe whose other
// end only the supervisor has, and the process that is about to become the command, until
// it carries the session's profile: so it ends when all that the session is can be found.
func Watch(words io.Reader, end func() bool) { scan.Watch(words, end, time.Sleep) }
