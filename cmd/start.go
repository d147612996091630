package cmd

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// job is a command and all that it is started with.
type job struct {
	file    string // found in PATH
	argv    []string
	env     []string
	dir     string
	limits  policy.Limits
	mayExec func(file string) bool // does the policy let it be executed

	// replan makes a plan that does without a namespace which the kernel
	// refused.
	replan func(enforce.Caps) (*enforce.Plan, error)
}

// binSh runs scripts that name no interpreter, as execvp(3) does.
const binSh = "/bin/sh"

// start starts the command in the session, confined by the plan unless that is
// nil, and explains why when it can't.
func (o *runFlags) start(a *app, s *track.Session, plan *enforce.Plan, job job) (*running, error) {
	r := &running{a: a, s: s, limits: job.limits, keep: o.keep, killAfter: o.killAfterTime()}
	cmd := &fork.Command{Path: job.file, Args: job.argv, Env: job.env, Dir: job.dir}
	cmd.Limit = fork.Limit{Time: r.limits.Timeout, Kill: r.killAfter}
	if o.exec {
		return nil, o.explainStart(r.launch(s.Exec, plan, cmd), job)
	}
	if cmd.Forward = forwarded(); !fork.CanForward {
		r.signals = listen()
	}
	var err error
	if r.limits.MaxOutput > 0 {
		if r.output, err = newOutputLimit(r.limits.MaxOutput, os.Stdout, os.Stderr); err != nil {
			return nil, err
		}
		defer r.output.closeEnds()
		cmd.Files = append([]*os.File{os.Stdin}, r.output.ends...)
	}
	if o.tty {
		if r.relay, err = newRelay(os.Stdin, os.Stdout); err != nil {
			return nil, err
		}
		r.relay.attach(cmd)
	}
	if err = r.launch(s.Start, plan, cmd); err != nil {
		return nil, o.explainStart(err, job)
	}
	r.began = time.Now()
	a.say.w = &patient{w: a.say.w}
	if r.signals == nil && !s.Forwarding() {
		r.signals = listen()
	}
	r.output.begin()
	if err := r.relay.begin(s, &r.exited); err != nil {
		a.say.warn("%v", err)
	}
	return r, nil
}

// launch starts cmd by start, with the plan put on. A script that names no
// interpreter is given to the shell, as execvp(3) does.
func (r *running) launch(start func(*fork.Command) error, plan *enforce.Plan, cmd *fork.Command) error {
	try := func(cmd fork.Command) error {
		cmd.Steps = append(fileLimitSteps(&cmd), cmd.Steps...)
		if plan != nil {
			plan.ForSession(r.s.ID())
			if err := r.confine(plan, &cmd); err != nil {
				return fmt.Errorf("preparing the restrictions: %w", err)
			}
		}
		err := start(&cmd)
		r.serve(err == nil)
		return enforce.ExplainStart(err)
	}
	script := *cmd
	script.Path, script.Args = binSh, append([]string{binSh, cmd.Path}, cmd.Args[1:]...)
	err := try(*cmd)
	if isExecError(err, syscall.ENOEXEC) && isScriptWithoutInterpreter(cmd.Path) {
		err = try(script)
	}
	return err
}

// isExecError reports whether execve(2) of the command failed with errno.
func isExecError(err error, errno syscall.Errno) bool {
	var se *fork.StepError
	return errors.As(err, &se) && se.Stage == "exec" && se.Errno == errno
}

// explainStart says why a command was not started.
func (o *runFlags) explainStart(err error, job job) error {
	var se *fork.StepError
	var te *track.TrackerError
	switch {
	case errors.As(err, &te):
		return o.trackerErr(te)
	case !errors.As(err, &se):
		return err
	case fork.ShortageOf(err) != nil: // execve(2) of the command may be what failed
	case se.Stage == "exec":
		return explainExec(job.file, se.Errno, job.mayExec)
	}
	return fmt.Errorf("starting %s: %w", job.file, err)
}

// commandEnv is what the search for the command depends on.
func commandEnv(env []string, dir string) execEnv {
	e := execEnv{dir: dir, path: defaultPath}
	if path, ok := lookupEnv(env, "PATH"); ok {
		e.path = path
	}
	return e
}
