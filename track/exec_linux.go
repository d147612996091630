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
		home, err := s.moveIn()
		defer func() { // it goes on: back to its own group
			if home != "" {
				_ = os.WriteFile(home+"/cgroup.procs", []byte("0"), 0)
			}
			s.dropGroup()
		}()
		if err != nil {
			return s.refused(Cgroup, err)
		}
	}
	s.record.Tracker, s.record.Command = s.choice.Kind, s.record.Supervisor
	c.Commit = append(c.Commit, func(*fork.Process) error { return s.store() })
	return fork.Exec(&c)
}

// moveIn makes a group for the session and moves this process there, from home.
func (s *Session) moveIn() (home string, err error) {
	from, err := cgroup.Dirs()
	if err != nil {
		return "", err
	}
	g, err := cgroup.Make(s.caps.group, cgroup.Name(s.record.ID))
	if err != nil {
		return "", err
	}
	s.record.Cgroup = g
	return from[0], g.Write("cgroup.procs", "0")
}
