package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/cgroup"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// How a session is ended. By a later process: askKeeper has the keeper do it, whose
// word is the proof; walk (look_linux.go) does without one, by the control group and by
// what names the session in its environment. Close does the same, after Kill.

const (
	howCgroup = "the session's control group, which the command could not leave, is empty"
	howEmpty  = "nothing was ever started"

	unprovedWord = "the keeper's word is gone; the keeper ended when it was asked to, which it does when nothing is left"
)

// reap kills all that is left of a session and says what it came to.
func (f *found) reap(ctx context.Context, r *Report) error {
	if now, err := proc.Identify(1); err == nil && now == f.record.Command {
		return fmt.Errorf("session %s: %w", f.record.ID, ErrInit)
	}
	for {
		k, err := f.openKeeper(ctx)
		if errors.Is(err, proc.ErrGone) {
			break
		}
		if err != nil {
			return err
		}
		over, err := f.askKeeper(ctx, k, r)
		k.Close()
		if over || err != nil || ctx.Err() != nil {
			return err
		}
	}
	f.listen() // it may have ended since the first look
	if f.empty() {
		f.proveEmpty(r)
		return nil
	}
	supervisor, err := proc.Identify(f.record.Self.Pid)
	if f.locked && (f.record.Keeper.IsZero() || err != nil || supervisor != f.record.Self) {
		return fmt.Errorf("session %s: %w", f.record.ID, ErrHeld)
	}
	err = f.walk(ctx, r)
	// Files that were damaged look as if nothing was started. If a process says that
	// it is the session's, something was.
	if !f.spoke() && f.damage == nil && f.file != nil && (f.record.Tracker == "" || f.word.Phase == fork.PhaseFailed) && r.Killed == 0 && !r.Left() && err == nil {
		r.prove(howEmpty)
	}
	return err
}

// helpTime is how long a keeper that was told to end its session is left alone.
const helpTime = 5 * time.Second

// askKeeper tells the keeper to end its session, and waits for its word. over
// says that nothing else is to be done.
func (f *found) askKeeper(ctx context.Context, k *proc.Handle, r *Report) (over bool, _ error) {
	var before []Proc
	if !f.spoke() {
		before, _ = f.procs() // its word, which counts them, may never come
	}
	var err error
	if !f.own { // which has told it already
		err = k.Signal(fork.ReapSignal)
	}
	if err == nil {
		err = k.Signal(unix.SIGCONT) // somebody may have stopped it
	}
	if err != nil && !errors.Is(err, proc.ErrGone) && !f.own {
		err = fmt.Errorf("signalling keeper %d: %w", k.Pid, err)
		if id := os.Getenv(SessionEnv); errors.Is(err, unix.EPERM) && id != "" {
			err = fmt.Errorf("%w (this process runs inside session %.64s)", err, id)
		}
		return true, err
	}
	// A scope was made after the keeper, which therefore can't use it.
	if g := f.group(); g != nil && g.Unit != "" {
		_, _ = g.Kill()
		r.addMethod("cgroup")
	}
	// A keeper without a domain looks for processes in /proc. What it could not open, for
	// want of memory or descriptors, is killed from here; it counts them all the same.
	ended := k.Wait(Within(ctx, helpTime))
	if !ended {
		_ = f.walk(ctx, &Report{})
		ended = k.Wait(ctx)
	}
	f.listen()
	switch {
	case f.empty():
		f.proveEmpty(r)
		return true, nil
	case !ended:
		r.Unproved = "the keeper is still waiting for a process that the kernel does not let die"
		r.Survivors, err = f.procs()
		return true, err
	case !f.spoke():
		r.Killed += len(before)
		r.Unproved = unprovedWord
	}
	return false, nil
}

// group is the session's own control group, nil if there is none.
func (f *found) group() *cgroup.Group {
	if g := f.record.Cgroup; g != nil && g.Of(f.record.ID) && g.There() {
		return g
	}
	return nil
}

// cleanup removes what the session has beside its record: its control group,
// which is empty.
func (f *found) cleanup() error {
	if g := f.group(); g != nil {
		return g.Remove()
	}
	return nil
}

// Kill begins to kill the whole session. It does not wait; Wait and Close do.
func (s *Session) Kill() error {
	err := s.process.Kill()
	if g := s.record.Cgroup; g != nil && g.Unit != "" {
		_, _ = g.Kill() // the keeper can't: the scope was made after it
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
