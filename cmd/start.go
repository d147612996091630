package cmd

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// shell runs scripts that name no interpreter, as execvp(3) does.
const shell = "/bin/sh"

// start starts the command confined, and explains why when it can't.
func (o *runFlags) start(a *app, plan *enforce.Plan, file string, argv []string) (*running, error) {
	r := &running{
		a: a, limits: plan.Policy.Limits, keep: o.keep,
		killAfter: o.killAfterTime(),
	}
	cmd := &fork.Command{
		Path: file, Args: argv, Env: plan.Policy.Env, Dir: plan.Policy.Dir,
		Keeper: &fork.Keeper{Keep: o.keep},
		Steps:  fileLimitSteps(),
	}
	r.keyboard = ignoreKeyboard()
	cmd.DefaultSignals = r.keyboard
	cmd.Meanwhile = func(*fork.Process) { r.signals = r.listen() }
	if r.limits.MaxOutput > 0 {
		var err error
		if r.output, err = newOutputLimit(r.limits.MaxOutput, os.Stdout, os.Stderr); err != nil {
			return nil, err
		}
		defer r.output.closeEnds()
		cmd.Files = append([]*os.File{os.Stdin}, r.output.ends...)
	}
	var err error
	if o.tty {
		if r.relay, err = newRelay(os.Stdin, os.Stdout); err != nil {
			return nil, err
		}
		r.relay.attach(cmd)
	}
	if r.p, err = startConfined(plan, *cmd); isExecError(err, syscall.ENOEXEC) && isScriptWithoutInterpreter(file) {
		cmd.Path, cmd.Args = shell, append([]string{shell, file}, argv[1:]...)
		r.p, err = startConfined(plan, *cmd)
	}
	if err != nil {
		return nil, explainStart(err, file, plan.Policy)
	}
	if err := r.relay.begin(); err != nil {
		r.p.Close()
		return nil, err
	}
	return r, nil
}

// startConfined puts the plan on a copy of cmd and starts it.
func startConfined(plan *enforce.Plan, cmd fork.Command) (*fork.Process, error) {
	if err := plan.Confine(&cmd); err != nil {
		return nil, fmt.Errorf("preparing the restrictions: %w", err)
	}
	return fork.Start(&cmd)
}

// isExecError tells whether execve(2) of the command failed with errno.
func isExecError(err error, errno syscall.Errno) bool {
	var se *fork.StepError
	return errors.As(err, &se) && se.Stage == "exec" && se.Errno == errno
}

// explainStart says why a command was not started.
func explainStart(err error, file string, r *policy.Resolved) error {
	var se *fork.StepError
	if !errors.As(err, &se) {
		return err
	}
	if se.Stage == "exec" {
		return explainExec(file, se.Errno, mayExecIn(r))
	}
	return fmt.Errorf("starting %s: %w", file, err)
}

// commandEnv is what the search for the command depends on.
func commandEnv(r *policy.Resolved) execEnv {
	e := execEnv{dir: r.Dir, path: defaultPath}
	if path, ok := lookupEnv(r.Env, "PATH"); ok {
		e.path = path
	}
	return e
}
