package sandbox

import (
	"context"
	"errors"
	"syscall"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/supervise"
	sessions "github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// Init must be called first in main. On macOS a program that runs commands starts itself
// again as a helper, to apply the limits and to watch over the session. In such a process
// Init does that and does not return.
func Init() { supervise.Init() }

// Run runs a command under a policy and waits until it and all that it started have ended.
// If the command was not started, the Result has only the exit status 125, and the error says
// why. The error is nil if the command ran and failed; see Result.ExitCode. When ctx is done, the
// session is killed.
func Run(ctx context.Context, p *policy.Policy, o Options) (Result, error) {
	c, err := Start(ctx, p, o)
	if err != nil {
		return Result{Status: notStarted}, err
	}
	return c.Wait()
}

// notStarted is the exit status of zsbx run for a command that was not started.
const notStarted = syscall.WaitStatus(125 << 8)

// Start starts a command under a policy. When ctx is done, what was started is killed, and
// Wait returns.
func Start(ctx context.Context, p *policy.Policy, o Options) (*Command, error) {
	opts, err := o.options()
	if err != nil {
		return nil, err
	}
	c, err := supervise.Start(ctx, p, opts)
	if err != nil {
		return nil, errorOf(err)
	}
	return &Command{c: c, explain: o.Explain}, nil
}

// Gaps returns the promises of a policy that this machine can't keep, accepted or not,
// without running anything. Args may be empty.
func Gaps(p *policy.Policy, o Options) ([]Gap, error) {
	opts, err := o.options()
	if err != nil {
		return nil, err
	}
	plan, err := supervise.Plan(p, opts)
	if err != nil {
		return nil, errorOf(err)
	}
	return gapsOf(plan.Gaps), nil
}

// Command is a command that was started, until it and all that it left behind have ended.
// Wait must be called. The other methods may be called by other goroutines.
type Command struct {
	c       *supervise.Command
	explain bool
}

// Session returns the id of the command's session, for zsbx ps, zsbx reap and package track.
func (c *Command) Session() string { return c.c.Session() }

// Pid returns the process id of the command.
func (c *Command) Pid() int { return c.c.Pid() }

// Signal sends a signal to the command.
func (c *Command) Signal(s syscall.Signal) error { return c.c.Signal(s) }

// Resize changes the size of the command's terminal, whose foreground processes get SIGWINCH.
// It is an error without Options.TTY, and after Wait.
func (c *Command) Resize(s Size) error { return c.c.Resize(s.Rows, s.Columns) }

// Wait follows the command to its end, ends what it left running, and reports. The error
// joins what else went wrong: *LimitError, ErrLost, the context's error, *OutputError, and
// *policy.Error of CodeSession.
func (c *Command) Wait() (Result, error) {
	r, err := c.c.Wait()
	out := Result{
		Status:  r.Status,
		Failed:  r.Failed,
		Report:  reportOf(&r.Report),
		Changes: changesOf(r.Changes),
		Home:    r.Home,
	}
	if r.Layer != nil {
		out.Layer = unread(r.Layer)
		if r.Layer.Frozen() {
			var failed error
			out.Layer, failed = layerOf(r.Layer)
			err = errors.Join(err, failed)
		}
	}
	if plan := c.c.Plan(); plan != nil {
		out.Gaps = gapsOf(plan.Gaps)
		if c.explain {
			out.Denials = denialsOf(plan, r.ExitCode())
		}
	}
	return out, errorOf(err)
}

// Result is how a command ended, and what it left.
type Result struct {
	Status  syscall.WaitStatus // how the command ended; SIGKILL if that is not known, or at the limit of output
	Failed  bool               // the command ended by itself, and not with 0
	Report  track.Report       // what was ended with it, what is left, and whether that is certain
	Gaps    []Gap              // promises that were not kept, since they were accepted or are hardening
	Denials *Denials           // what the command was refused, with Options.Explain; else nil

	// Changes are files that changed meanwhile, and that other programs execute or trust or that
	// are denied.
	Changes []Change

	// Layer has what the command wrote, if the policy has FS.Writes "try"; nil if that is nothing.
	// With Options.Keep, and if it is not certain that nothing of the command is left, it has only the
	// ID and the directories: see OpenLayer.
	Layer *Layer

	// Home has the files that were written into a private home, and directories, which end in
	// "/". It is empty if the home is kept.
	Home []string
}

// ExitCode returns the command's exit status, or 128 plus the number of the signal that ended
// it, as a shell does.
func (r *Result) ExitCode() int {
	if r.Status.Signaled() {
		return 128 + int(r.Status.Signal())
	}
	return r.Status.ExitStatus()
}

// Change is a file that changed.
type Change struct {
	Path   string
	New    bool // it was not there before
	Closed bool // not all of it can be seen: what is in it may have changed
}

func changesOf(all []enforce.Change) []Change {
	var out []Change
	for _, c := range all {
		out = append(out, Change(c))
	}
	return out
}

func reportOf(r *sessions.Report) track.Report {
	out := track.Report{
		ID:       r.ID,
		Name:     r.Name,
		Tracker:  track.Kind(r.Tracker),
		Killed:   r.Killed,
		Proof:    r.Proof,
		How:      r.How,
		Unproved: r.Unproved,
		Kept:     r.Kept,
		Removed:  r.Removed,
	}
	for _, p := range r.Survivors {
		out.Survivors = append(out.Survivors, track.Proc{Pid: p.Pid, State: p.State, Comm: p.Name, Args: p.Argv})
	}
	return out
}
