package track

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/cgroup"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// How a session starts on Linux: choose picks the tracker, launch starts the command
// below a keeper with what that tracker needs, recordHolder writes down who holds the
// session before the command runs. When the kernel refuses a tracker that was not
// asked for by name, downgrade takes it off the list, and chooses the next one.

// held is what holds a session on Linux, beside its keeper.
type held struct {
	group *cgroup.Group // the session's own control group, or nil
	procs *os.File      // its cgroup.procs
	kill  *os.File      // its cgroup.kill, nil before Linux 5.14
	home  string        // the group that this process left for it, with Exec
}

// randomID calls getrandom(2) itself. crypto/rand guards its first read by a timer,
// which costs a start two descriptors and a thread, and x/sys sets up the vDSO's
// generator first.
func randomID() (uuid.UUID, error) {
	var b [16]byte
	if _, _, errno := unix.RawSyscall(unix.SYS_GETRANDOM, uintptr(unsafe.Pointer(&b)), unsafe.Sizeof(b), 0); errno != 0 {
		return uuid.Nil, errno
	}
	return uuid.NewRandomFromReader(bytes.NewReader(b[:]))
}

// choose picks the tracker. The usual answer, Domain, needs one system call;
// all the rest is only looked at where that is missing.
func (s *Session) choose() (err error) {
	if s.opts.Exec {
		return s.chooseInPlace()
	}
	if s.opts.caps != nil {
		s.caps = *s.opts.caps
	} else if s.caps = probeDomain(); s.caps.err == nil {
		if s.choice, err = s.caps.choose(s.opts.Tracker, s.opts.Scoped); err == nil && (s.choice.Kind == Domain || s.opts.Tracker != Auto) {
			return nil
		}
		s.caps = probe()
	}
	if s.caps.err != nil {
		return s.caps.err
	}
	s.choice, err = s.caps.choose(s.opts.Tracker, s.opts.Scoped)
	return err
}

// downgrade takes what just failed off the machine's list and chooses again:
// ErrDowngraded. Any other error says that there is nothing else to try: the failure
// was the command's own, or the tracker was asked for by name.
func (s *Session) downgrade(failure error) error {
	var step *fork.StepError
	var tracker *TrackerError
	errors.As(failure, &step)
	entering := step != nil && step.Tag == tagGroup
	ours := errors.Is(failure, fork.ErrNoDomain) || errors.As(failure, &tracker) || entering || step != nil && step.Stage == fork.StageKeeper
	if !ours || entering && s.limits != "" || fork.ShortageOf(failure) != nil {
		return failure // no tracker makes up for it
	}
	why := failure.Error()
	if tracker != nil {
		why = tracker.Why
	}
	switch {
	case s.choice.Kind == Domain:
		if s.opts.Tracker == Auto && s.opts.caps == nil {
			if s.caps = probe(); s.caps.err != nil {
				return s.caps.err
			}
		}
		s.caps.noDomain = why
	case s.choice.Kind == Cgroup && s.choice.Scope:
		s.caps.noScope = why
	case s.choice.Kind == Cgroup:
		s.caps.group, s.caps.noGroup = "", why
	default:
		return failure
	}
	s.dropGroup()
	return s.chooseAgain(failure)
}

// tagGroup is that of the steps by which the command enters its group, or waits
// until systemd has put it into its scope.
const tagGroup fork.Tag = "control group"

// launch makes one attempt to start c with the chosen tracker.
func (s *Session) launch(c fork.Command) error {
	if s.record.Tracker != "" { // an earlier attempt failed, and its keeper has said so
		if err := s.state.Truncate(0); err != nil {
			return err
		}
	}
	s.record.Holder = Holder{Tracker: s.choice.Kind}
	c.Keeper = &fork.Keeper{Keep: s.opts.Keep, State: s.state}
	if s.choice.Kind == Domain {
		steps, done, err := domainSteps(s.caps.landlock)
		if err != nil {
			return &TrackerError{Kind: Domain, Why: err.Error(), Err: err}
		}
		defer done()
		c.Keeper.Steps, c.Keeper.Domain = steps, true
	}
	c.Commit = append(c.Commit, s.recordHolder)
	if s.limits == scope || s.limits == "" && s.choice.Scope {
		return s.launchInScope(c)
	}
	if s.limits != "" || s.choice.Kind == Cgroup {
		if err := s.enterGroup(&c); err != nil {
			return err
		}
	}
	return s.launched(fork.Start(&c))
}

// recordHolder stores the session, while its keeper gets ready. Of a scope the
// group is not known yet: see moveToScope.
func (s *Session) recordHolder(p *fork.Process) error {
	err := s.locate()
	if err != nil {
		return fmt.Errorf("recording the session: %w", err)
	}
	s.record.Keeper, err = proc.Identify(p.KeeperPid)
	switch {
	case proc.Gone(err):
		return nil // it ended already, which the caller learns in its own way
	case err != nil:
		return fmt.Errorf("recording the session: looking at its keeper: %w", err)
	}
	return s.store()
}

// enterGroup makes the session's group, and the command be born in it: before
// anything of the command runs it writes "0", for itself, into cgroup.procs.
func (s *Session) enterGroup(c *fork.Command) error {
	s.dropGroup() // of an attempt that failed
	if err := s.makeGroup(cmp.Or(s.limits, s.caps.group)); err != nil {
		return s.groupError(err)
	}
	c.Keeper.CgroupKill = s.held.kill
	c.Steps = append([]fork.Step{writeStep(c.Memory(), "entering the session's", s.held.procs, "0")}, c.Steps...)
	return nil
}

// groupError says that the session's group can't be had.
func (s *Session) groupError(err error) error {
	if s.limits != "" {
		return fmt.Errorf("%w: %w", ErrLimits, err)
	}
	return &TrackerError{Kind: Cgroup, Why: err.Error(), Err: err}
}

// makeGroup makes the session's group in a directory, and bounds it.
func (s *Session) makeGroup(dir string) error {
	g, err := cgroup.Make(dir, cgroup.Name(s.record.ID))
	if err != nil {
		return err
	}
	s.held.group, s.record.Cgroup = g, &g.Ref
	if err := g.Limit(s.opts.Limits); err != nil {
		return err
	}
	if s.held.procs, err = g.OpenFile("cgroup.procs", unix.O_WRONLY); err != nil {
		return err
	}
	s.held.kill, _ = g.OpenFile("cgroup.kill", unix.O_WRONLY)
	return nil
}

// removeHeld removes the session's group, which is empty.
func (s *Session) removeHeld() error {
	if s.held.group == nil {
		return nil
	}
	return s.held.group.Remove()
}

// dropGroup gives up a group that nothing was started in.
func (s *Session) dropGroup() {
	_ = s.removeHeld()
	s.closeHeld()
	s.record.Cgroup = nil
}

func (s *Session) closeHeld() {
	_, _ = s.held.procs.Close(), s.held.kill.Close() // of nil, an error
	if s.held.group != nil {
		s.held.group.Close()
	}
	s.held = held{}
}

// writeStep is a step that writes s into f.
func writeStep(m *fork.Memory, name string, f *os.File, s string) fork.Step {
	return fork.Step{Tag: tagGroup, Name: name, Nr: syscall.SYS_WRITE, Args: [6]uintptr{f.Fd(), uintptr(unsafe.Pointer(m.Text(s))), uintptr(len(s))}}
}
