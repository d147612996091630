package track

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// Options says what session to begin. The zero value is a session in the user's own store, with
// the strongest tracker for a command that is only tracked. Its processes are killed when it
// ends.
type Options struct {
	Store   *Store // nil for OpenStore
	Name    string // see CheckName; "" for none
	Tracker Kind   // "" is Auto

	// Confined says that the command confines itself before it runs foreign code. It can then
	// neither write to cgroupfs, nor reach a service manager, nor signal or trace the keeper.
	Confined bool

	// Scoped says that it does so in a Landlock domain with LANDLOCK_SCOPE_SIGNAL, which the
	// tracker Domain needs.
	Scoped bool

	// Keep lets what the command leaves behind run until a later Store.Reap.
	Keep bool

	// Exec makes Start replace this process by the command, which keeps the pid. Start returns
	// only if that failed. The command then has no supervisor, so what it leaves behind runs
	// until Store.Reap. The tracker is Process.
	Exec bool

	// Temp is a directory that is not needed once the session is over, or "". It is recorded.
	// Whoever ends the session, or removes it from the store, gets it as Report.Temp.
	Temp string

	// Limits are the limits for the session's processes.
	Limits Limits

	// Watcher is the command line of a program that calls Watch, with Store.Reap to end the
	// session, or nil; macOS only. It gets the session's id as an additional last argument and
	// the pipe as its standard input. It ends the session if this process is killed. With Keep,
	// or with a Store from the caller, it is not started.
	Watcher []string

	caps *caps // what the machine offers, for tests; nil to find out
}

// Limits are for all processes of a session together, except the keeper, whatever tracks it.
type Limits = cgroup.Limits

// ErrLimits is in the error of a session whose limits this machine can't enforce.
var ErrLimits = errors.New("limits can't be set here")

// process is the command, once it was started. Session promotes its methods and overrides some.
type process = fork.Process

// Session is one command and all that it starts.
//
// The caller must always call Close. One goroutine calls Next and Wait, then Close. Other
// methods may be called from any goroutine. Methods about the command need one that was
// started.
type Session struct {
	*process

	opts   Options
	caps   caps
	choice Choice

	found            // as a later process will find it
	watcher *os.File // the pipe to the watcher on macOS, or nil
	note    *os.File // see Note; nil for none

	parent string // the directory in which the session's control group is made, scope, or "" for none

	tail []fork.Event // see lastWords
	news news
}

// scope stands for the directory if the user's service manager makes the group.
const scope = "scope"

// Begin makes a session on disk and chooses its tracker. It runs nothing. The error is a
// *TrackerError if the tracker asked for is not available, ErrNameTaken if a live session has
// the name, and ErrLimits if limits can't be set.
func Begin(o Options) (*Session, error) {
	s := &Session{opts: o, found: found{startedHere: true}}
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
	if err := s.openStore(); err != nil {
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
	s.in, s.file, err = s.opts.Store.create(s.record.ID)
	if err != nil {
		return nil, fmt.Errorf("making a place for the session: %w", err)
	}
	if o.Name != "" {
		err = s.locate()
		if err == nil {
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

// openStore opens the user's own store if the caller has none.
func (s *Session) openStore() (err error) {
	if s.opts.Store != nil {
		s.opts.Watcher = nil
		return nil
	}
	s.opts.Store, err = OpenStore()
	return err
}

// choose chooses the tracker, and where to make a control group.
func (s *Session) choose() (err error) {
	if s.opts.caps != nil {
		s.caps = *s.opts.caps
	} else {
		s.caps = probe(s.opts)
	}
	if s.caps.err != nil {
		return s.caps.err
	}
	s.choice, err = s.caps.choose(s.opts)
	if err != nil {
		return err
	}
	if s.opts.Limits != (Limits{}) {
		s.parent, err = findGroup(s.opts.Limits)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrLimits, err)
		}
	} else if s.choice.Kind == Cgroup {
		s.parent = s.caps.group
	}
	return nil
}

// ProbeLimits finds out whether a session can have limits, if l has any, by making a group and
// removing it again.
func ProbeLimits(l Limits) (err error) {
	if l != (Limits{}) {
		_, err = findGroup(l)
	}
	return err
}

// locate records this machine and this process, once.
func (s *Session) locate() error {
	if !s.record.Supervisor.IsZero() {
		return nil
	}
	here, err := proc.Here()
	if err != nil {
		return fmt.Errorf("describing this machine: %w", err)
	}
	s.record.Machine = here
	return nil
}

// ID returns the session's id, a UUID.
func (s *Session) ID() string { return s.record.ID }

// Pid returns the pid of the command's first process, or 0 before Start.
func (s *Session) Pid() int {
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// Start starts c in the session. It adds ZSBX_SESSION to the environment, a keeper, and what
// the tracker needs. It does not change c, but it runs c.Cleanup. The error is fork.Start's if
// the command could not be started, or a *TrackerError. After an error Start can be called
// again.
func (s *Session) Start(c *fork.Command) error {
	changed := *c
	changed.Cleanup = nil // run below, since fork.Start may not be reached
	defer func() {
		for _, f := range c.Cleanup {
			f()
		}
	}()
	if s.process != nil {
		return errors.New("the session has a command already")
	}
	s.record.Argv = proc.CutArgs(c.Args)
	s.record.Dir = c.Dir[:min(len(c.Dir), 4096)]
	if s.record.Dir == "" {
		s.record.Dir, _ = os.Getwd()
	}
	changed.Env = setEnv(c.Env, SessionEnv, s.record.ID)
	if s.opts.Exec {
		return s.replace(changed)
	}
	return s.launch(changed)
}

// store writes the session's record. No command runs without it.
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
