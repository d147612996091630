package track

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/cgroup"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// Options say what session to begin. The zero value is a session in the
// user's own store with the strongest tracker for a command that is only
// tracked, whose processes are killed when it ends.
type Options struct {
	Store   *Store // nil: OpenStore
	Name    string // see CheckName; "" for none
	Tracker Kind   // "" is Auto

	// Confined says that the command confines itself before it runs foreign
	// code, so that it can neither write to cgroupfs nor reach a service
	// manager nor signal or trace the keeper.
	Confined bool

	// Scoped says that it does so with a Landlock domain that has
	// LANDLOCK_SCOPE_SIGNAL, which the tracker Domain builds on.
	Scoped bool

	// Keep leaves running what the command leaves behind, for a later
	// Store.Reap.
	Keep bool

	// Exec has Start replace this process by the command, which keeps the pid:
	// Start returns only when that failed. Nobody is above the command then: what
	// it leaves behind goes on until Store.Reap. The tracker is Process.
	Exec bool

	// Temp is a directory that is of no use once the session is over, or "".
	// It is recorded, and Report.Temp tells whoever ends the session, or
	// removes it from the store.
	Temp string

	// Limits bound the session's processes.
	Limits Limits

	// Watch is the command line of a program that calls Watch for the session
	// whose id is added as the last argument, with Store.Reap to end it; macOS
	// only. It is started beside the command, with the pipe as its standard
	// input, and ends the session if this process is killed. nil for none. With
	// Keep, and with a Store of the caller's, it is not started.
	Watch []string

	caps *caps // what the machine offers, in tests; nil to find out
}

// Limits bound what all processes of a session have together, but for the keeper,
// whatever tracks it.
type Limits = cgroup.Limits

var ErrLimits = errors.New("limits can't be set here")

// process is the command, once it was started. A session has its methods, but for
// those of its own.
type process = fork.Process

// Session is one command and all that it starts.
//
// Close must be called in any case. Next and Wait are for one goroutine, and
// Close comes after them; the other methods may be called from anywhere. Those
// about the command are for one that was started.
type Session struct {
	*process

	opts   Options
	caps   caps
	choice Choice

	found          // as a later process will find it
	watch *os.File // the pipe to the watcher on macOS, or nil

	parent string // the directory in which the session's control group is made, scope, or "" for none

	tail []fork.Event // what a keeper that is gone wrote down
	news news
}

// scope stands for the directory of a group that the user's service manager makes.
const scope = "scope"

// Begin makes a session on disk, with its tracker, and runs nothing. The error
// is a *TrackerError if the tracker asked for is not available, ErrNameTaken if a live
// session has the name, ErrLimits if there can be none.
func Begin(o Options) (*Session, error) {
	s := &Session{opts: o, found: found{own: true}}
	if o.Tracker == "" {
		s.opts.Tracker = Auto
	}
	if o.Name != "" {
		if err := CheckName(o.Name); err != nil {
			return nil, err
		}
	}
	if err := s.choose(); err != nil {
		return nil, err
	}
	var err error
	if o.Store != nil {
		s.opts.Watch = nil
	} else if s.opts.Store, err = OpenStore(); err != nil {
		return nil, err
	}
	id, err := randomID()
	if err != nil {
		return nil, err
	}
	s.record = Record{
		Version: recordVersion, ID: id.String(), Name: o.Name, Temp: o.Temp,
		Started: time.Now().UTC(), Keep: o.Keep, Exec: o.Exec, TrackOnly: !o.Confined,
	}
	if s.in, s.file, err = s.opts.Store.create(s.record.ID); err != nil {
		return nil, fmt.Errorf("making a place for the session: %w", err)
	}
	if o.Name != "" {
		if err = s.locate(); err == nil {
			err = s.in.claim(s.file, &s.record)
		}
	}
	if err != nil {
		_ = os.Remove(s.in.file(s.record.ID))
		s.release()
		return nil, err
	}
	return s, nil
}

func (s *Session) choose() (err error) {
	if s.opts.caps != nil {
		s.caps = *s.opts.caps
	} else if s.caps = probe(s.opts); s.caps.err != nil {
		return s.caps.err
	}
	s.choice, err = s.caps.choose(s.opts)
	switch {
	case err != nil:
	case s.opts.Limits != (Limits{}):
		if s.parent, err = findGroup(s.opts.Limits); err != nil {
			return fmt.Errorf("%w: %w", ErrLimits, err)
		}
	case s.choice.Kind == Cgroup:
		s.parent = s.caps.group
	}
	return err
}

// ProbeLimits finds out, by making a group and removing it again, whether a
// session can have limits, if there are any.
func ProbeLimits(l Limits) (err error) {
	if l != (Limits{}) {
		_, err = findGroup(l)
	}
	return err
}

func (s *Session) locate() error {
	if !s.record.Self.IsZero() {
		return nil
	}
	here, err := proc.Here()
	if err != nil {
		return fmt.Errorf("describing this machine: %w", err)
	}
	s.record.Machine = here
	return nil
}

// ID is the session's id, a UUID.
func (s *Session) ID() string { return s.record.ID }

// Pid is the command's first process, 0 before Start.
func (s *Session) Pid() int {
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// Start starts c within the session: it adds ZSBX_SESSION to its environment,
// a keeper, and what the tracker needs. c itself stays as it is, but its
// Cleanup is run. The error is that of fork.Start, when the command itself could not be
// started, or a *TrackerError. Start can be called again after it.
func (s *Session) Start(c *fork.Command) error {
	own := *c
	own.Cleanup = nil // which fork.Start is not always reached to run
	defer func() {
		for _, f := range c.Cleanup {
			f()
		}
	}()
	if s.process != nil {
		return errors.New("the session has a command already")
	}
	s.record.Argv = proc.CutArgs(c.Args)
	if s.record.Dir = c.Dir[:min(len(c.Dir), 4096)]; s.record.Dir == "" {
		s.record.Dir, _ = os.Getwd()
	}
	own.Env = setEnv(c.Env, SessionEnv, s.record.ID)
	if s.opts.Exec {
		return s.replace(own)
	}
	return s.launch(own)
}

// store writes down what the session is, and what holds it. No command runs without
// that.
func (s *Session) store() error {
	err := s.locate()
	if err == nil {
		err = writeRecord(s.file, &s.record)
	}
	if err != nil {
		return fmt.Errorf("recording the session: %w", err)
	}
	return nil
}

func setEnv(env []string, name, value string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	return append(out, name+"="+value)
}
