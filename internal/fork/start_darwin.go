package fork

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// sandboxExec is macOS's own helper, sandbox-exec(1).
const sandboxExec = "/usr/bin/sandbox-exec"

// start starts a command as a child of the calling process. macOS has no subreaper, so there is
// no keeper.
func start(c *Command) (*Process, error) {
	if c.Keeper != nil {
		return nil, fmt.Errorf("starting below a keeper: %w", errors.ErrUnsupported)
	}
	if len(c.Steps) > 0 {
		return nil, fmt.Errorf("making system calls before the command runs: %w", errors.ErrUnsupported)
	}
	if c.Sandbox == nil {
		return c.startPlain(c.Path, c.Args)
	}
	if c.Sandbox.External {
		args := append([]string{sandboxExec, "-p", c.Sandbox.Profile, c.Path}, c.Args[1:]...)
		return c.startPlain(sandboxExec, args)
	}
	return c.startHelped()
}

// attr returns the new process's attributes.
func (c *Command) attr(more ...*os.File) *syscall.ProcAttr {
	a := &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{}}
	for i, f := range c.Files {
		if f != nil && i < 3 {
			a.Files[i] = f.Fd()
		}
	}
	for _, f := range more {
		a.Files = append(a.Files, f.Fd())
	}
	a.Sys.Setsid = c.Terminal
	a.Sys.Setctty = c.Terminal
	return a
}

func (c *Command) startPlain(path string, args []string) (*Process, error) {
	pid, err := syscall.ForkExec(path, args, c.attr())
	if err != nil {
		return nil, stepError(StageExec, path, err)
	}
	p, err := c.started(pid)
	if err == nil {
		p.startClock(c)
	}
	return p, err
}

// started calls Commit with the new process, and kills the process if that fails.
func (c *Command) started(pid int) (*Process, error) {
	p := &Process{Pid: pid, conn: -1}
	if err := c.commit(p); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = wait4(pid, 0)
		return nil, err
	}
	return p, nil
}

// stepError turns an error of fork or exec into a *StepError.
func stepError(stage Stage, name string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return &StepError{Stage: stage, Name: name, Errno: errno}
	}
	return fmt.Errorf("%s: %s: %w", stage, name, err)
}

// startHelped starts the helper, gives it its orders, and waits until the command is executed.
// The helper itself runs without an environment, since the command's variables must not affect
// it before the profile is applied.
func (c *Command) startHelped() (*Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	orders, err := c.orders()
	if err != nil {
		return nil, err
	}
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer orderW.Close()
	reportR, reportW, err := os.Pipe()
	if err != nil {
		orderR.Close()
		return nil, err
	}
	defer reportR.Close()
	files := []*os.File{orderR, reportW}
	if c.Sandbox.Hold != nil {
		files = append(files, c.Sandbox.Hold)
	}
	a := c.attr(files...)
	a.Env = []string{}
	pid, err := syscall.ForkExec(exe, append([]string{exe, SandboxArg, c.Path}, c.Args...), a)
	orderR.Close()
	reportW.Close()
	if err != nil {
		return nil, stepError(StageHelper, exe, err)
	}
	p, err := c.started(pid)
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = orderW.WriteString(orders) // if the helper has ended, its reports say so
		orderW.Close()
	}()
	if err := outcome(c.Path, readReports(reportR)); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = wait4(pid, 0)
		return nil, err
	}
	p.startClock(c)
	return p, nil
}

// readReports reads reports until the helper is gone or has become the command.
func readReports(f *os.File) []report {
	var all []report
	d := json.NewDecoder(f)
	for {
		var r report
		if d.Decode(&r) != nil {
			return all
		}
		all = append(all, r)
	}
}

// execSelf applies the profile to this process and becomes the command.
func execSelf(c *Command) error {
	switch {
	case len(c.Steps) > 0:
		return fmt.Errorf("replacing the process: steps: %w", errors.ErrUnsupported)
	case c.Sandbox == nil || c.Sandbox.External:
		return fmt.Errorf("replacing the process: %w", errors.ErrUnsupported)
	}
	for i, f := range c.Files {
		if f == nil || i > 2 {
			continue
		}
		if err := syscall.Dup2(int(f.Fd()), i); err != nil {
			return stepError(StageCommand, "dup2(2)", err)
		}
	}
	if c.Dir != "" {
		if err := syscall.Chdir(c.Dir); err != nil {
			return stepError(StageCommand, "chdir(2)", err)
		}
	}
	if err := closeOthers(); err != nil {
		return err
	}
	if err := confine(c.Sandbox); err != nil {
		return err
	}
	return stepError(StageExec, c.Path, syscall.Exec(c.Path, c.Args, c.Env))
}
