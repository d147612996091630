package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/libsystem"
)

// held is what holds a session on macOS, beside the profile.
type held struct {
	markers bool // the marker files were made
}

// probe finds out whether the fingerprint can be had.
func probe() Caps {
	c := Caps{OS: "macos"}
	switch libsystem.SandboxCheck(os.Getpid(), "", libsystem.FilterNone, "") {
	case libsystem.Allowed:
		c.Seatbelt = true
	case libsystem.Denied:
		c.SeatbeltWhy = "this process runs in a sandbox already, and macOS can't nest them"
	default:
		c.SeatbeltWhy = "sandbox_check gives no answer"
	}
	return c
}

// choose picks the tracker.
func (s *Session) choose() error {
	s.caps = probe()
	if s.opts.Caps != nil {
		s.caps = *s.opts.Caps
	}
	c, err := Choose(s.caps, s.opts.Tracker, s.opts.Scoped)
	s.choice = c
	return err
}

// weaken takes the next tracker when the profile of a command that is only
// tracked was refused. A confined command is never started without its profile.
func (s *Session) weaken(failure error) error {
	var refused *fork.SandboxError
	if s.choice.Kind != Fingerprint || s.opts.Confined || !errors.As(failure, &refused) {
		return failure
	}
	_ = s.removeHeld()
	s.caps.Seatbelt, s.caps.SeatbeltWhy = false, failure.Error()
	c, err := Choose(s.caps, s.opts.Tracker, s.opts.Scoped)
	if err != nil {
		return err
	}
	s.choice = c
	return nil
}

// equip gives the command what its tracker needs.
func (s *Session) equip(c *fork.Command) error {
	c.Keeper = nil
	s.holder = Holder{Tracker: s.choice.Kind}
	id := s.record.ID
	switch {
	case s.choice.Kind == Group:
		c.Group = true
		if !s.opts.Confined {
			c.Sandbox = nil // it was for the fingerprint only
		}
	case c.Sandbox == nil:
		c.Sandbox = &fork.Sandbox{Profile: fingerprint.TrackProfile(id), Session: id, Markers: true}
	case c.Sandbox.Session != id:
		return fmt.Errorf("the command's profile carries the fingerprint of session %q, not of this one", c.Sandbox.Session)
	}
	if c.Sandbox == nil || c.Sandbox.Session != id || s.held.markers {
		return nil
	}
	if err := makeMarkers(id); err != nil {
		return err
	}
	s.held.markers = true
	return nil
}

// launch makes one attempt to start c with the chosen tracker.
func (s *Session) launch(c fork.Command) error {
	if err := s.equip(&c); err != nil {
		return err
	}
	c.Commit = func(p *fork.Process) (err error) {
		if s.holder.Command, err = identify(p.Pid); err == nil {
			err = s.dir.writeHolder(&s.holder)
		}
		if err != nil {
			return fmt.Errorf("recording the session: %w", err)
		}
		return nil
	}
	p, err := fork.Start(&c)
	if err == nil {
		s.proc = p
	}
	return err
}

// replace is Exec.
func (s *Session) replace(c fork.Command) error {
	if err := s.locate(); err != nil {
		return err
	}
	if err := s.equip(&c); err != nil {
		return err
	}
	if s.choice.Kind != Fingerprint {
		return s.needsSupervisor()
	}
	s.holder.Command = s.record.Supervisor
	if err := s.dir.writeHolder(&s.holder); err != nil {
		return fmt.Errorf("recording the session: %w", err)
	}
	return fork.Exec(&c)
}

// awaitKeeper: there is no keeper to wait for.
func (s *Session) awaitKeeper(context.Context) bool { return true }

// kill ends the command; settle finds the rest.
func (s *Session) kill() error {
	if s.choice.Kind == Group {
		_ = syscall.Kill(-s.proc.Pid, syscall.SIGKILL)
	}
	if err := s.proc.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// settle kills what is left and finds out whether that was all.
func (s *Session) settle(ctx context.Context, r *Report) error {
	f := &found{dir: s.dir, record: &s.record, holder: s.holder}
	return f.settle(ctx, r)
}

// removeHeld removes the marker files.
func (s *Session) removeHeld() error {
	if !s.held.markers {
		return nil
	}
	s.held.markers = false
	return removeMarkers(s.record.ID, os.Geteuid())
}

func (s *Session) closeHeld() {}
