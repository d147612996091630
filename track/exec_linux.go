package track

import (
	"os"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/cgroup"
)

// chooseInPlace picks the tracker of a command that replaces this process. Auto
// takes no control group: to move a process that runs into one, the kernel waits
// for all processors (cgroup_threadgroup_rwsem), for longer than a start takes.
func (s *Session) chooseInPlace() error {
	switch s.choice.Kind = s.opts.Tracker; s.choice.Kind {
	case Auto:
		s.choice.Kind = Process
	case Cgroup: // whether one can be had shows when it is made
	default:
		return s.needsSupervisor()
	}
	return nil
}

// replace is Start with Options.Exec.
func (s *Session) replace(c fork.Command) error {
	if err := s.locate(); err != nil {
		return err
	}
	if s.choice.Kind == Cgroup {
		if err := s.moveIn(); err != nil {
			return &TrackerError{Kind: Cgroup, Why: err.Error(), Hint: "--track auto", Err: err}
		}
	}
	s.record.Tracker, s.record.Command = s.choice.Kind, s.record.Supervisor
	c.Commit = append(c.Commit, func(*fork.Process) error { return s.store() })
	err := fork.Exec(&c)
	s.moveOut()
	return err
}

// moveIn makes a group for the session and moves this process there.
func (s *Session) moveIn() error {
	from, err := cgroup.Dirs()
	if err != nil {
		return err
	}
	g, err := cgroup.Nearest(cgroup.Name(s.record.ID), func(g *cgroup.Group) error { return g.Write("cgroup.procs", "0") })
	if err != nil {
		return err
	}
	s.held.group, s.held.home, s.record.Cgroup = g, from[0], &g.Ref
	return nil
}

// moveOut takes this process back to its own group, and removes the session's.
func (s *Session) moveOut() {
	if s.held.group == nil {
		return
	}
	_ = os.WriteFile(s.held.home+"/cgroup.procs", []byte("0"), 0)
	s.dropGroup()
}
