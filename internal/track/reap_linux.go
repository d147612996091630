package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// This file ends a session from a later process. askKeeper makes the keeper do it, whose word
// is the proof. Without a keeper, walk (look_linux.go) uses the control group and the
// environment of processes. Close does the same, after Kill.

const (
	howCgroup = "the session's control group, which the command could not leave, is empty"
	howEmpty  = "nothing was ever started"

	unprovedEmpty = "its file has no record, so whether anything was started is not known; nothing was found"
	unprovedWord  = "the keeper's word is gone; the keeper ended when it was asked to, " +
		"which it does when nothing is left"
)

// reap kills all that is left of a session and completes the report.
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
	if f.locked && !f.lockExplained() {
		return fmt.Errorf("session %s: %w", f.record.ID, ErrLocked)
	}
	if err := f.walk(ctx, r); err != nil {
		return err
	}
	// Damaged files look as if nothing was started. A killed process proves that something was.
	damaged := f.damage != nil || f.file == nil
	if damaged || f.spoke() || r.Killed > 0 || r.Left() {
		return nil
	}
	startedNothing := f.word.Phase == fork.PhaseFailed || f.recorded() && f.record.Tracker == ""
	if startedNothing {
		r.prove(howEmpty)
	} else if !f.recorded() && r.Unproved != unprovedWord {
		r.Unproved = unprovedEmpty
	}
	return nil
}

// lockExplained reports whether the supervisor has the lock of a session whose keeper is gone.
func (f *found) lockExplained() bool {
	supervisor, err := proc.Identify(f.record.Supervisor.Pid)
	return err == nil && supervisor == f.record.Supervisor && !f.record.Keeper.IsZero()
}

// helpTime is how long a keeper gets to end its session before walk helps.
const helpTime = 5 * time.Second

// forEver is longer than anybody waits.
const forEver = 1 << 61 * time.Nanosecond

// WithTimeout is context.WithTimeout without a timer of Go's, for which the runtime needs
// epoll(7). If a session has used up what its user may have of that, the runtime would end the
// program, and the session could not be ended. The context has no Deadline. It ends up to 50 ms
// late, as context.Canceled.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	end := time.Now().Add(d)
	go func() {
		for ctx.Err() == nil && time.Now().Before(end) {
			proc.Pause(min(d, 50*time.Millisecond))
		}
		cancel()
	}()
	return ctx, cancel
}

// askKeeper tells the keeper to end its session, and waits for its word. over says that nothing
// else needs to be done.
func (f *found) askKeeper(ctx context.Context, k *proc.Handle, r *Report) (over bool, _ error) {
	var before []Proc
	if !f.spoke() {
		before, _ = f.procs() // the keeper's word, which has the count, may never come
	}
	err := f.signalKeeper(k)
	if err != nil {
		return true, err
	}
	// A scope was made after the keeper, so the keeper can't use it.
	if g := f.group(); g != nil && g.Unit != "" {
		_, _ = g.Kill()
		r.addMethod("cgroup")
	}
	// A keeper without a domain looks for processes in /proc. Those that it can't open, for
	// lack of memory or descriptors, are killed from here. The keeper still counts them.
	ended := k.Wait(ctx, helpTime)
	if !ended {
		_ = f.walk(ctx, &Report{})
		ended = k.Wait(ctx, forEver)
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

// signalKeeper asks the keeper to end the session. It is no error if the keeper is gone.
func (f *found) signalKeeper(k *proc.Handle) error {
	if f.startedHere { // Kill has asked it already
		_ = k.Signal(unix.SIGCONT)
		return nil
	}
	err := k.Signal(fork.ReapSignal)
	if err == nil {
		err = k.Signal(unix.SIGCONT) // it may have been stopped
	}
	if err == nil || errors.Is(err, proc.ErrGone) {
		return nil
	}
	err = fmt.Errorf("signalling keeper %d: %w", k.Pid, err)
	if id := os.Getenv(SessionEnv); errors.Is(err, unix.EPERM) && id != "" {
		err = fmt.Errorf("%w (this process runs inside session %.64s)", err, id)
	}
	return err
}

// group returns the session's control group, or nil.
func (f *found) group() *cgroup.Group {
	if g := f.record.Cgroup; g != nil && g.Of(f.record.ID) && g.There() {
		return g
	}
	return nil
}

// cleanup removes the session's control group, which is empty.
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
		_, _ = g.Kill() // the keeper can't, since the scope was made after it
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
