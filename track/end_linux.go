package track

import (
	"context"
	"errors"
	"os"

	"github.com/zsbx/zsbx/enforce/fork"
)

// kill asks for the end of everything.
func (s *Session) kill() error {
	if s.choice.Kind == Group {
		if _, err := strike(context.Background(), s.walkTargets().pick); err != nil {
			return err
		}
	}
	err := s.proc.Kill()
	if g := s.held.group; g != nil && g.ref.Unit != "" {
		_ = g.kill() // the keeper can't: the scope was made after it
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// settle finds out what is left once the keeper has spoken, or has not.
func (s *Session) settle(ctx context.Context, r *Report) error {
	w, n := readWord(s.state), s.learned()
	r.Methods = methods(w.state.Method)
	switch {
	case s.choice.Kind == Group:
		return settleWalk(ctx, s.walkTargets(), r)
	case n.emptied:
		r.Proof, r.How, r.Killed = true, howKeeper, n.killed
		return nil
	case n.lost && w.known && w.state.Phase == fork.PhaseEmpty:
		r.Proof, r.How, r.Killed = true, howKeeper, int(w.state.Killed)
		return nil
	case n.lost:
		return s.found().settleLost(ctx, r)
	}
	r.Unproved = "the keeper is not done yet"
	ps, err := s.found().procs()
	r.Survivors = ps
	return err
}

// awaitKeeper waits for the keeper's end, and reports whether Next can be
// asked without waiting long.
func (s *Session) awaitKeeper(ctx context.Context) bool {
	if s.holder.Keeper.IsZero() {
		return true
	}
	k, err := openProc(s.holder.Keeper)
	if err != nil {
		return errors.Is(err, errGone) || ctx.Done() == nil
	}
	defer k.close()
	return k.wait(ctx)
}

// found is the session as a later process would find it.
func (s *Session) found() *found {
	return &found{dir: s.dir, record: &s.record, holder: s.holder, state: s.state, word: readWord(s.state)}
}

func (s *Session) walkTargets() targets { return s.found().targets() }
