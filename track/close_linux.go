package track

import (
	"context"
	"errors"
	"os"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// kill asks for the end of everything.
func (s *Session) kill() error {
	if s.choice.Kind == Group {
		if _, err := killAll(context.Background(), s.found().targets()); err != nil {
			return err
		}
	}
	err := s.proc.Kill()
	if g := s.held.group; g != nil && g.Unit != "" {
		_ = g.Kill() // the keeper can't: the scope was made after it
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// settle finds out what is left once the keeper has spoken, or has not.
func (s *Session) settle(ctx context.Context, r *Report) (err error) {
	f := s.found()
	r.Methods = methods(f.word.state.Method)
	switch {
	case s.choice.Kind == Group:
		return settleWalk(ctx, f.targets(), r)
	case s.news.emptied:
		r.prove(howKeeper)
		r.Killed = s.news.killed
	case s.news.lost && f.word.empty():
		r.prove(howKeeper)
		r.Killed = int(f.word.state.Killed)
	case s.news.lost:
		return f.settleLost(ctx, r)
	default:
		r.Unproved = "the keeper is not done yet"
		r.Survivors, err = f.procs()
	}
	return err
}

// awaitKeeper waits for the keeper's end, and reports whether Next can be
// asked without waiting long.
func (s *Session) awaitKeeper(ctx context.Context) bool {
	if s.holder.Keeper.IsZero() {
		return true
	}
	k, err := proc.Open(s.holder.Keeper)
	if err != nil {
		return errors.Is(err, proc.ErrGone) || ctx.Done() == nil
	}
	defer k.Close()
	return k.Wait(ctx)
}

// found is the session as a later process would find it.
func (s *Session) found() *found {
	return &found{dir: s.dir, record: &s.record, holder: s.holder, state: s.state, word: readWord(s.state)}
}

// noteReached looks at the limits while the group is there: systemd removes one
// that is empty.
func (s *Session) noteReached() {
	if g := s.held.group; g != nil && s.opts.Limits != (Limits{}) {
		if r := g.Reached(); r != (Reached{}) && (!r.Gone || s.reached == (Reached{})) {
			s.reached = r
		}
	}
}
