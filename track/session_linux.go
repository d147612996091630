package track

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// How a session starts on Linux: choose picks the tracker, launch starts the command
// below a keeper with what that tracker needs, recordHolder writes down who holds the
// session before the command runs. When the kernel refuses a tracker that was not
// asked for by name, downgrade takes it off the list, and chooses the next one.

// held is what holds a session on Linux, beside its keeper.
type held struct {
	group *cgroup  // the session's own control group, or nil
	procs *os.File // its cgroup.procs
	kill  *os.File // its cgroup.kill, nil before Linux 5.14
	home  string   // the group that this process left for it, with Exec
}

// choose picks the tracker. The usual answer, Domain, needs one system call;
// all the rest is only looked at where that is missing.
func (s *Session) choose() error {
	if s.opts.Exec {
		return s.chooseInPlace()
	}
	if s.opts.Caps != nil {
		s.caps = *s.opts.Caps
	} else {
		s.caps = probeDomain()
	}
	if s.caps.Err != nil {
		return s.caps.Err
	}
	c, err := Choose(s.caps, s.opts.Tracker, s.opts.Scoped)
	if s.opts.Caps == nil && (err != nil || c.Kind != Domain) {
		if s.caps = probe(); s.caps.Err != nil {
			return s.caps.Err
		}
		c, err = Choose(s.caps, s.opts.Tracker, s.opts.Scoped)
	}
	s.choice = c
	return err
}

// downgrade takes what just failed off the machine's list and chooses again:
// ErrDowngraded. Any other error says that there is nothing else to try: the failure
// was the command's own, or the tracker was asked for by name.
func (s *Session) downgrade(failure error) error {
	var step *fork.StepError
	var limit *LimitError
	entering := errors.As(failure, &step) && step.Tag == tagGroup
	if errors.As(failure, &limit) || entering && s.opts.Limits != (Limits{}) {
		return failure // no tracker makes up for it
	}
	var tracker *TrackerError
	ours := errors.Is(failure, fork.ErrNoDomain) || errors.As(failure, &tracker) ||
		entering || errors.As(failure, &step) && step.Stage == fork.StageKeeper
	if !ours || fork.ShortageOf(failure) != nil {
		return failure
	}
	why := failure.Error()
	if tracker != nil {
		why = tracker.Why
	}
	switch s.choice.Kind {
	case Domain:
		s.caps.Landlock, s.caps.LandlockWhy = 0, why
		if s.opts.Tracker == Auto && s.opts.Caps == nil {
			p := probe()
			if p.Err != nil {
				return p.Err
			}
			p.Landlock, p.LandlockWhy = 0, why
			s.caps = p
		}
	case Cgroup:
		if s.choice.Scope {
			s.caps.UserManager, s.caps.UserManagerWhy = false, why
		} else {
			s.caps.Cgroup, s.caps.CgroupWhy = "", why
		}
	default:
		return failure
	}
	s.dropGroup()
	c, err := Choose(s.caps, s.opts.Tracker, s.opts.Scoped)
	if err != nil {
		return err
	}
	s.choice = c
	return fmt.Errorf("%w: %w", ErrDowngraded, failure)
}

// tagGroup is that of the steps by which the command enters its group, or waits
// until systemd has put it into its scope.
const tagGroup fork.Tag = "control group"

// launch makes one attempt to start c with the chosen tracker.
func (s *Session) launch(c fork.Command) error {
	s.holder = Holder{Tracker: s.choice.Kind}
	// Who holds the session is stored before the command runs, while the keeper
	// gets ready. Of a scope the group is not known yet: see moveToScope.
	inScope := s.choice.Scope && s.opts.Limits == (Limits{}) || s.limits.scope
	if !inScope {
		c.Commit = s.recordHolder
	}
	c.Keeper = s.keeper()
	switch s.choice.Kind {
	case Domain:
		done, err := s.setDomain(c.Keeper)
		if err != nil {
			return err
		}
		defer done()
	case Cgroup, Subtree:
	case Group:
		c.Keeper = nil
		c.Steps = append([]fork.Step{{Name: "setpgid(2)", Nr: unix.SYS_SETPGID}}, c.Steps...)
	default:
		return fmt.Errorf("tracker %s is not for Linux", s.choice.Kind)
	}
	switch {
	case inScope:
		return s.launchInScope(c)
	case s.limits.dir != "" || s.choice.Kind == Cgroup:
		if err := s.enterGroup(&c); err != nil {
			return err
		}
	}
	p, err := fork.Start(&c)
	return s.launched(p, err)
}

// keeper is the session's, before the tracker adds to it.
func (s *Session) keeper() *fork.Keeper {
	k := &fork.Keeper{Keep: s.opts.Keep, State: s.state}
	if t := s.opts.Temp; t != "" && 2*len(t)+8 < fork.RemoveSize {
		k.Remove = []string{t + "/run/", t + "/"}
	}
	return k
}

// setDomain gives the keeper its Landlock domain.
func (s *Session) setDomain(k *fork.Keeper) (done func(), err error) {
	if k.Steps, done, err = domainSteps(s.caps.Landlock); err != nil {
		return nil, &TrackerError{Kind: Domain, Why: err.Error(), Err: err}
	}
	k.Domain = true
	return done, nil
}

// launched takes over what was started.
func (s *Session) launched(p *fork.Process, err error) error {
	if err != nil {
		return err
	}
	s.proc = p
	s.holder.Command, _ = identify(p.Pid)
	return nil
}

// recordHolder stores who holds the session. No command runs without that.
func (s *Session) recordHolder(p *fork.Process) error {
	var err error
	if p.KeeperPid != 0 {
		s.holder.Keeper, err = identify(p.KeeperPid)
	} else if s.holder.Command.IsZero() {
		s.holder.Command, err = identify(p.Pid)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil // it ended already, which the caller learns in its own way
	}
	if err != nil {
		return fmt.Errorf("recording the session: looking at its keeper: %w", err)
	}
	if err := s.dir.writeHolder(&s.holder); err != nil {
		return fmt.Errorf("recording the session: %w", err)
	}
	return nil
}

// enterGroup makes the session's group, and the command be born in it: before
// anything of the command runs it writes "0", for itself, into cgroup.procs.
func (s *Session) enterGroup(c *fork.Command) error {
	s.dropGroup() // of an attempt that failed
	err := s.openHeld(cmp.Or(s.limits.dir, s.caps.Cgroup))
	switch {
	case err != nil && s.limits.dir != "":
		return &LimitError{Why: err.Error(), Err: err}
	case err != nil:
		return &TrackerError{Kind: Cgroup, Why: err.Error(), Err: err}
	}
	if c.Keeper != nil {
		c.Keeper.CgroupKill = s.held.kill
	}
	c.Steps = append([]fork.Step{writeStep("entering the session's", s.held.procs, []byte("0"))}, c.Steps...)
	return nil
}

// openHeld makes the session's group in a directory, and bounds it.
func (s *Session) openHeld(dir string) error {
	g, err := makeCgroup(dir, cgroupName(s.record.ID))
	if err != nil {
		return err
	}
	s.held.group = g
	s.holder.Cgroup = &g.ref
	if err := g.limit(s.opts.Limits); err != nil {
		return err
	}
	if s.held.procs, err = g.open("cgroup.procs", unix.O_WRONLY); err != nil {
		return err
	}
	if s.held.kill, err = g.open("cgroup.kill", unix.O_WRONLY); err != nil {
		s.held.kill = nil
	}
	return nil
}

// removeHeld removes the session's group, which is empty.
func (s *Session) removeHeld() error {
	if s.held.group == nil {
		return nil
	}
	return s.held.group.remove()
}

// dropGroup gives up a group that nothing was started in.
func (s *Session) dropGroup() {
	_ = s.removeHeld()
	s.closeHeld()
	s.holder.Cgroup = nil
}

func (s *Session) closeHeld() {
	for _, f := range []*os.File{s.held.procs, s.held.kill} {
		if f != nil {
			_ = f.Close()
		}
	}
	if s.held.group != nil {
		s.held.group.close()
	}
	s.held = held{}
}

// dismiss is macOS's: the keeper is told by Process.Detach.
func (s *Session) dismiss() {}

// writeStep is a step that writes b into f. Go's heap does not move, so that
// keeping b alive is all that the address needs.
func writeStep(name string, f *os.File, b []byte) fork.Step {
	return fork.Step{Tag: tagGroup, Name: name, Nr: syscall.SYS_WRITE, Args: [6]uintptr{f.Fd(), addr(b), uintptr(len(b))}, Keep: b}
}
