package track

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
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

// replace is Exec.
func (s *Session) replace(c fork.Command) error {
	if err := s.locate(); err != nil {
		return err
	}
	if s.choice.Kind == Cgroup {
		if err := s.moveIn(); err != nil {
			return &TrackerError{Kind: Cgroup, Why: err.Error(), Hint: "--track auto", Err: err}
		}
	}
	s.holder.Tracker, s.holder.Command = s.choice.Kind, s.record.Supervisor
	c.Commit = func(*fork.Process) error {
		if err := s.dir.writeHolder(&s.holder); err != nil {
			return fmt.Errorf("recording the session: %w", err)
		}
		return nil
	}
	err := fork.Exec(&c)
	s.moveOut()
	return err
}

// moveIn makes a group for the session and moves this process there.
func (s *Session) moveIn() error {
	dirs, err := ownCgroupDirs()
	if err != nil {
		return err
	}
	for _, d := range dirs {
		g, e := makeCgroup(d, cgroupName(s.record.ID))
		if e == nil {
			if e = g.write("cgroup.procs", "0"); e == nil {
				s.held.group, s.held.home, s.holder.Cgroup = g, dirs[0], &g.ref
				return nil
			}
			_ = g.remove()
			g.close()
		}
		if err == nil {
			err = e
		}
	}
	return err
}

// moveOut takes this process back to its own group, and removes the session's.
func (s *Session) moveOut() {
	if s.held.group == nil {
		return
	}
	if home, err := openCgroup(s.held.home); err == nil {
		_ = home.write("cgroup.procs", "0")
		home.close()
	}
	s.dropGroup()
}

// secretive reports whether a process lets nobody of its user read the
// environment that it was started with, as ssh-agent(1) does (PR_SET_DUMPABLE).
func secretive(pid int) bool {
	fd, err := unix.Open(procPath(pid, "environ"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

// addGroup adds to a list the processes of the session's group that are not in it.
func (f *found) addGroup(ps []Proc, t table) []Proc {
	g := f.openGroup()
	if g == nil {
		return ps
	}
	defer g.close()
	pids, _ := g.pids()
	have := make(map[int]bool, len(ps))
	for _, p := range ps {
		have[p.Pid] = true
	}
	for _, pid := range pids {
		if p, ok := t[pid]; ok && !have[pid] && !p.dead() {
			ps = append(ps, p)
		}
	}
	return ps
}
