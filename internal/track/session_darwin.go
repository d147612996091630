package track

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/google/uuid"

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/proc"
)

func probe(Options) caps { return caps{os: runtime.GOOS, noSeatbelt: fork.NoSandbox()} }

func randomID() (uuid.UUID, error) { return uuid.NewRandom() }

func findGroup(Limits) (string, error) {
	return "", fmt.Errorf("only Linux has control groups: %w", errors.ErrUnsupported)
}

func (s *Session) equip(c *fork.Command) error {
	c.Keeper = nil
	s.record.Holder = Holder{Tracker: s.choice.Kind}
	id := s.record.ID
	switch {
	case c.Sandbox == nil:
		profile, err := fingerprint.TrackProfile(id, homes()...)
		if err != nil {
			return fmt.Errorf("writing the profile: the home directory: %w", err)
		}
		c.Sandbox = &fork.Sandbox{Profile: profile, Session: id}
	case c.Sandbox.Session != id:
		return fmt.Errorf("the command's profile carries the fingerprint of session %q, not of this one",
			c.Sandbox.Session)
	}
	return nil
}

// homes returns the user's home directory as in HOME and as the kernel names it.
func homes() []string {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return nil
	}
	names := []string{filepath.Clean(home)}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		names = append(names, real)
	}
	return names
}

func (s *Session) launch(c fork.Command) error {
	if err := errors.Join(s.startWatcher(), s.equip(&c)); err != nil {
		return err
	}
	sandbox := *c.Sandbox
	sandbox.Hold = s.watcher
	c.Sandbox = &sandbox
	c.Commit = append(c.Commit, func(p *fork.Process) (err error) {
		s.record.Command, err = proc.Identify(p.Pid)
		if err != nil {
			return fmt.Errorf("recording the session: %w", err)
		}
		return s.store()
	})
	p, err := fork.Start(&c)
	if err == nil {
		s.process = p
	}
	return err
}

// startWatcher starts Options.Watcher in a new terminal session, so that keys pressed for the
// command don't signal it.
func (s *Session) startWatcher() error {
	argv := s.opts.Watcher
	if len(argv) == 0 || s.opts.Keep || s.watcher != nil {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the session's watcher: %w", err)
	}
	defer r.Close()
	p, err := os.StartProcess(argv[0], append(argv[:len(argv):len(argv)], s.record.ID), &os.ProcAttr{
		Dir: "/", Files: []*os.File{r}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = w.Close()
		return fmt.Errorf("starting the session's watcher: %w", err)
	}
	go func() { _, _ = p.Wait() }()
	s.watcher = w
	return nil
}

// replace implements Start with Options.Exec.
func (s *Session) replace(c fork.Command) error {
	if err := errors.Join(s.equip(&c), s.locate()); err != nil {
		return err
	}
	s.record.Command = s.record.Supervisor
	if err := s.store(); err != nil {
		return err
	}
	return fork.Exec(&c)
}

// Kill begins to kill the whole session: it ends the command, and Close finds the rest.
func (s *Session) Kill() error {
	if err := s.process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
