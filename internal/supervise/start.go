package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/supervise/internal/stdio"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
)

// Command is a command that was started, until it and all that it left behind
// have ended. Wait must be called.
type Command struct {
	*prepared
	s     *track.Session
	began time.Time

	files    *stdio.Files
	relay    *stdio.Relay   // nil without Options.TTY
	signals  chan os.Signal // nil unless this process receives signals for the command
	pass     *passing
	broker   *enforce.Broker
	served   chan struct{} // closed when the broker is done
	draining atomic.Bool   // only the relay is still busy: a signal ends that
	outside  *hostNotes    // nil without hosts outside
	proxy    *hosts.Front  // nil unless these are reached by a proxy
	reached  reached       // with Options.ObserveHosts
	before   *enforce.Snapshot
	layer    *layer.Layer // what the command writes goes there; nil if it is written at once
	note     note         // what was stored for whoever reports if this process is killed
	reserved sync.Once    // reserveThreads was called

	trouble error // with the caller's terminal, reported by Wait
	ctx     context.Context
	detach  func() // stops following the context

	status   syscall.WaitStatus
	exited   atomic.Bool
	timedOut atomic.Bool
	tooMuch  atomic.Bool  // more was written than the limit allows
	canceled atomic.Bool  // the context was done
	passed   atomic.Int32 // the last signal that forward passed on
	reaped   bool         // the session was being killed when the command ended
	emptied  bool         // the keeper said that nothing is left
	kept     bool         // processes run on, as Options.Keep allows
}

// binSh runs scripts that name no interpreter, as execvp(3) does.
const binSh = "/bin/sh"

// Run runs a command under a policy and waits until it and all that it started have
// ended. If the command was not started, the Result is empty and the error says why. The
// error is nil if the command ran and failed; see Result.ExitCode. When ctx is done, the
// session is ended.
func Run(ctx context.Context, p *policy.Policy, o Options) (Result, error) {
	c, err := Start(ctx, p, o)
	if err != nil {
		return Result{}, err
	}
	return c.Wait()
}

// Start starts a command under a policy. When ctx is done, what was started is killed,
// and Wait returns.
func Start(ctx context.Context, p *policy.Policy, o Options) (*Command, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p == nil && !o.TrackOnly {
		return nil, errors.New("there is no policy")
	}
	o.InPlace = false
	c, err := o.run(p)
	if err != nil {
		return nil, err
	}
	c.attach(ctx)
	return c, nil
}

// run prepares and starts a command. If that fails, it undoes what was begun.
func (o *Options) run(p *policy.Policy) (*Command, error) {
	pre, err := o.begin(p)
	if err != nil {
		return nil, err
	}
	c := &Command{prepared: pre, files: &stdio.Files{}}
	if o.Job && !o.InPlace {
		c.listen()
	}
	err = c.prepare()
	if err == nil {
		err = c.start()
	}
	if err != nil {
		err = c.log.end(c, nil, err)
		c.giveUp()
		return nil, err
	}
	return c, nil
}

// attach makes sure that the session is killed when the context is done, until detach.
func (c *Command) attach(ctx context.Context) {
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		c.canceled.Store(true)
		_ = c.s.Kill()
	})
	c.ctx = ctx
	c.detach = func() {
		if !stop() && ctx.Err() != nil {
			<-killed
		}
	}
}

// Exec replaces this process with the command, under the policy. It returns only if that
// can't be done. The command has this process's standard input and output.
func Exec(p *policy.Policy, o Options) error {
	o.InPlace = true
	o.Stdin = os.Stdin
	o.Stdout = os.Stdout
	o.Stderr = os.Stderr
	_, err := o.run(p)
	return err
}

// giveUp undoes what was begun for a command that was not started.
func (c *Command) giveUp() {
	c.endPassing()
	c.stopListening()
	if c.s != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		_, _ = c.s.Close(ctx)
		c.s.Told() // nothing ran
	}
	c.proxy.Close(false)
	c.files.CloseCommand()
	c.files.Close()
	c.relay.Close()
	if err := c.dropLayer(); err != nil {
		c.warn(Warning{Text: fmt.Sprintf("removing the layer of a command that was not started: %v", err)})
	}
	c.leaveTemp(false)
}

// start runs the command in a new session. It does without what the kernel refuses, if
// the gaps that this leaves are accepted.
func (c *Command) start() error {
	env := resolve.Tracked(c.host.Env)
	dir := c.host.Dir
	if c.plan != nil {
		env = c.plan.Env
		dir = c.resolved.Dir
	}
	if len(c.o.Args) == 0 {
		return errors.New("no command given")
	}
	file, err := LookPath(c.o.Args[0], env, dir)
	if err != nil {
		return err
	}
	c.tellEarlier()
	if c.plan != nil {
		c.before = c.plan.Snapshot(&c.host)
	}
	if err := c.beginSession(); err != nil {
		return err
	}
	if err := c.noteHosts(); err != nil {
		return err
	}
	if err := c.standardIO(); err != nil {
		return err
	}
	// This timer makes Go's runtime start its poller (epoll(7)) now. Later the command may have
	// used up the user's share of it (max_user_watches). The runtime ends a program that gets no
	// poller, and zsbx would not report what the command changed.
	time.AfterFunc(time.Hour, func() {}).Stop()
	cmd := &fork.Command{Path: file, Args: c.o.Args, Env: env, Dir: dir}
	cmd.Limit = fork.Limit{Time: time.Duration(c.limits.Timeout.Value), Kill: c.o.KillAfter}
	err = c.launch(cmd)
	if err != nil {
		return c.explainStart(err, file)
	}
	c.begin()
	return nil
}

// standardIO opens what the command reads and writes. A command that replaces this
// process inherits its descriptors.
func (c *Command) standardIO() (err error) {
	switch {
	case c.o.InPlace:
	case c.o.TTY:
		c.relay, err = stdio.NewRelay(c.o.Stdin, c.o.Stdout, c.o.Rows, c.o.Columns)
	default:
		err = c.files.Open(c.o.Stdin, c.o.Stdout, c.o.Stderr, c.limits.MaxOutput.Value, func() {
			c.tooMuch.Store(true)
			_ = c.s.Kill()
		})
	}
	return err
}

// attempts is how often a start is tried when other commands change the same tree.
const attempts = 5

// launch starts cmd. It tries again if the kernel refused something that is not required,
// or if files of the plan are gone. A script that names no interpreter is given to the
// shell, as execvp(3) does. Each try makes its steps anew, because a child has the
// broker's socket only once.
func (c *Command) launch(cmd *fork.Command) error {
	script := *cmd
	script.Path = binSh
	script.Args = append([]string{binSh, cmd.Path}, cmd.Args[1:]...)
	for overtaken := 0; ; {
		if err := c.log.start(c); err != nil {
			return err
		}
		err := c.try(*cmd)
		caps, again := c.plan.Refused(err)
		if enforce.Overtaken(err) {
			overtaken++
			again = overtaken < attempts
		}
		switch {
		case again:
			if err := c.planAgain(caps); err != nil {
				return err
			}
		case cmd != &script && isExecError(err, syscall.ENOEXEC) && isForShell(cmd.Path):
			cmd = &script
		default:
			return err
		}
	}
}

// try starts a command under the current plan.
func (c *Command) try(cmd fork.Command) error {
	if c.pass != nil {
		cmd.Commit = append(cmd.Commit, func(*fork.Process) error {
			c.pass.begin()
			return nil
		})
	}
	switch {
	case c.relay != nil:
		c.relay.Attach(&cmd)
	case !c.o.InPlace && c.files.Command != [3]*os.File{os.Stdin, os.Stdout, os.Stderr}:
		cmd.Files = c.files.Command[:]
	}
	cmd.Terminal = cmd.Terminal || c.o.Controlling
	if c.plan != nil {
		c.plan.ForSession(c.s.ID())
		if err := c.makeLayer(); err != nil {
			return err
		}
		err := c.serveProxy()
		if err != nil {
			return err
		}
		cmd.Env = c.plan.Env // a refusal by the kernel changes it, and so does a proxy
		c.broker, err = c.plan.Confine(&cmd)
		if err != nil {
			return fmt.Errorf("preparing the restrictions: %w", err)
		}
		c.tellHosts()
	}
	c.noteInTime(&cmd)
	if !c.o.InPlace {
		c.reserveInTime(&cmd)
	}
	err := c.s.Start(&cmd)
	c.serve(err == nil)
	return enforce.ExplainStart(err)
}

// begin starts copying input and output, once the command runs.
func (c *Command) begin() {
	c.began = time.Now()
	c.passEarly()
	c.endInTime()
	c.s.Later(c.reserve)
	c.files.CloseCommand()
	c.files.Begin(c.o.Job)
	c.trouble = c.relay.Begin(c.s, &c.exited)
}

// isForShell reports whether execvp(3) runs a file by the shell.
func isForShell(file string) bool {
	return slices.Contains(execParts(file), part{binSh, "interpreter"})
}

func isExecError(err error, errno syscall.Errno) bool {
	se, ok := errors.AsType[*fork.StepError](err)
	return ok && se.Stage == fork.StageExec && se.Errno == errno
}

func (c *Command) explainStart(err error, file string) error {
	if te, ok := errors.AsType[*track.TrackerError](err); ok {
		return sessionErr(te)
	}
	se, ok := errors.AsType[*fork.StepError](err)
	if !ok {
		return err
	}
	short := fork.ShortageOf(err) != nil // also if execve(2) of the command failed
	if !short && se.Stage == fork.StageExec {
		_, e := explainExec(c.plan, file, se.Errno)
		return e
	}
	err = fmt.Errorf("starting %s: %w", file, err)
	if !short && enforce.Overtaken(err) {
		err = fmt.Errorf("%w; another command may be removing or replacing what is denied or protected here: "+
			"try again", err)
	}
	return err
}

// Session returns the id of the command's session, for zsbx ps and zsbx reap.
func (c *Command) Session() string { return c.s.ID() }

// Pid returns the process id of the command.
func (c *Command) Pid() int { return c.s.Pid() }

// Plan returns what is enforced, or nil for a command that is only tracked.
func (c *Command) Plan() *enforce.Plan { return c.plan }

// Resize changes the size of the command's terminal. It is an error without Options.TTY.
func (c *Command) Resize(rows, columns uint16) error {
	if c.relay == nil {
		return errors.New("the command has no terminal from zsbx")
	}
	return c.relay.Resize(rows, columns)
}

// Signal sends a signal to the command.
func (c *Command) Signal(s syscall.Signal) error { return c.s.Signal(s) }
