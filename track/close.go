package track

import (
	"context"
	"errors"
	"time"
)

// Close ends the session. Unless it is to be kept, all that is left of it is
// killed; with proof that nothing is, it is removed from the store. When ctx
// is done before, the report names the survivors, and the session stays in the
// store for a later Reap.
func (s *Session) Close(ctx context.Context) (Report, error) {
	if s.dir == nil {
		return Report{}, errors.New("the session is closed")
	}
	defer s.release()
	r := Report{ID: s.record.ID, Name: s.record.Name, Tracker: s.choice.Kind, Temp: s.record.Temp}
	if s.proc == nil {
		r.prove("nothing was started")
		return r, s.discardAll(&r)
	}
	over := s.news.emptied || s.news.lost
	if s.opts.Keep && !over && !s.nothingLeft() {
		s.noteReached()
		r.Kept, r.Reached = true, s.reached
		return r, s.proc.Close()
	}
	if !over {
		s.drain(ctx)
	}
	if err := s.settle(ctx, &r); err != nil || r.Left() {
		return r, err
	}
	return r, s.discardAll(&r)
}

// drain kills and waits for the keeper's word, until ctx is done. It makes no
// goroutine: where the table of processes is full, Go could not get a thread
// for it.
func (s *Session) drain(ctx context.Context) {
	_ = s.Kill() // a keeper that is gone shows in Next
	for ok := s.awaitKeeper(ctx); ok; {
		_, err := s.Next()
		ok = err == nil
	}
}

// nothingLeft asks whether a session that is to be kept has anything to keep.
// The keeper writes it down right after the command's end.
func (s *Session) nothingLeft() bool {
	for try := 0; s.news.exited && try < 2; try++ {
		if w := readWord(s.state); w.empty() {
			s.news.emptied, s.news.killed = true, int(w.state.Killed)
			return true
		}
		time.Sleep(300 * time.Microsecond)
	}
	return false
}

// discardAll removes the session from the system and from the store.
func (s *Session) discardAll(r *Report) error {
	s.noteReached()
	r.Reached = s.reached
	if err := s.removeHeld(); err != nil {
		return err
	}
	r.NotRemoved = s.discard()
	r.Removed = r.NotRemoved == nil
	return nil
}

// discard removes the session from the store. What became of the command is no
// less true if that fails, and Store.Prune finds the session later.
func (s *Session) discard() error { return s.dir.remove(s.record.Name) }

// release closes all descriptors.
func (s *Session) release() {
	if s.proc != nil {
		_ = s.proc.Close()
	}
	s.closeHeld()
	_ = s.state.Close()
	s.dir.in.close()
	s.dir = nil
}
