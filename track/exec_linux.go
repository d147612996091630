package track

import (
	"os"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/cgroup"
)

// replace is Start with Options.Exec.
func (s *Session) replace(c fork.Command) error {
	if err := s.locate(); err != nil {
		return err
	}
	if s.choice.Kind == Cgroup {
		if err := s.moveIn(); err != nil {
			s.moveOut()
			return s.refused(Cgroup, err)
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
	if s.held.group, err = cgroup.Make(s.caps.group, cgroup.Name(s.record.ID)); err != nil {
		return err
	}
	s.held.home, s.record.Cgroup = from[0], &s.held.group.Ref
	return s.held.group.Write("cgroup.procs", "0")
}

// moveOut takes this process back to its own group, and removes the session's.
func (s *Session) moveOut() {
	if s.held.group == nil {
		return
	}
	_ = os.WriteFile(s.held.home+"/cgroup.procs", []byte("0"), 0)
	s.dropGroup()
}
