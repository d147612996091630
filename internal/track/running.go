package track

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/scan"
)

// news is what is known about a running session.
type news struct {
	timedOut bool // the command was asked to end
	exited   bool // the command has ended
	emptied  bool // the keeper said that nothing is left
	lost     bool // the keeper is gone without saying so
}

// Next waits for the command's next event. It returns io.EOF after fork.Emptied or, without a
// keeper, after fork.Exited. fork.ErrKeeperLost says that somebody killed the keeper. Close
// then does what can still be done.
func (s *Session) Next() (ev fork.Event, err error) {
	if s.tail == nil {
		ev, err = s.process.Next()
		if errors.Is(err, fork.ErrKeeperLost) {
			s.tail = s.lastWords()
		}
	}
	if s.tail != nil {
		if len(s.tail) == 0 {
			return fork.Event{}, io.EOF
		}
		ev = s.tail[0]
		s.tail = s.tail[1:]
		err = nil
	}
	if err != nil {
		s.news.lost = errors.Is(err, fork.ErrKeeperLost)
		return ev, err
	}
	switch ev.Kind {
	case fork.TimedOut:
		s.news.timedOut = true
	case fork.Exited:
		s.news.exited = true
	case fork.Emptied:
		if s.process.KeeperPid == 0 { // the command has ended; nobody knows about the session
			return fork.Event{}, io.EOF
		}
		s.news.emptied = true
	}
	return ev, nil
}

// Beside makes Next watch a descriptor, too: see fork.Process.Beside. It returns false if Next
// can't.
func (s *Session) Beside(fd int, ready func(readable bool)) bool {
	if s.process.KeeperPid != 0 {
		s.process.Beside(fd, ready)
	}
	return s.process.KeeperPid != 0
}

// lastWords returns the events that a keeper which is gone wrote into the file, or nil if it
// did not end properly. A message can get lost if this process was stopped for long or the
// kernel lacked memory. If the keeper could not even report that the command runs, it has
// killed it, so the status would mislead.
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

// Close ends the session. Unless it is to be kept, Close kills all that is left of it, and
// removes it from the store. If ctx is done before, the report names the survivors, and the
// session stays in the store for a later Reap.
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
		_ = s.Kill() // if the keeper is gone, reap notices
		if err := s.reap(ctx, &r); err != nil || r.Left() {
			return r, err
		}
		for err := error(nil); err == nil && r.Proof; { // wait for the keeper
			_, err = s.Next()
		}
	}
	r.NotRemoved = s.forget(&r)
	return r, nil
}

// nothingLeft reports whether a session that is to be kept has nothing to keep. The keeper
// writes that right after the command's end, but on a busy machine it may have to wait for a processor.
func (s *Session) nothingLeft() bool {
	for try := 0; s.news.exited && try < 30; try++ {
		s.listen()
		if s.empty() {
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
	if s.watcher != nil { // there is nothing left to watch
		_, _ = s.watcher.Write([]byte{scan.WordOver})
		_ = s.watcher.Close()
	}
	s.close()
}

// Watch replaces the keeper on macOS, where no process can adopt others. If the supervisor
// disappears without saying that the session is over, Watch calls end until that returns true,
// but not for ever. words is a pipe. Only the supervisor has the other end, and the process
// that becomes the command, until it has the session's profile. So when the pipe closes, all of
// the session can be found by its fingerprint.
func Watch(words io.Reader, end func() bool) { scan.Watch(words, end, time.Sleep) }
