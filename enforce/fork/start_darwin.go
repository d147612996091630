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

// start starts a command as a child of the calling process: macOS has no
// subreaper, so there is no keeper.
func start(c *Command) (*Process, error) {
	switch {
	case c.Keeper != nil:
		return nil, fmt.Errorf("starting below a keeper: %w", errors.ErrUnsupported)
	case len(c.Steps) > 0:
		return nil, fmt.Errorf("making system calls before the command runs: %w", errors.ErrUnsupported)
	case c.Sandbox == nil:
		return c.startPlain(c.Path, c.Args)
	case c.Sandbox.External:
		args := append([]string{sandboxExec, "-p", c.Sandbox.Profile, c.Path}, c.Args[1:]...)
		return c.startPlain(sandboxExec, args)
	}
	return c.startHelped()
}

// attr are the new process's attributes.
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

// started tells of the new process. Where that fails, it is killed.
func (c *Command) started(pid int) (*Process, error) {
	p := &Process{Pid: pid, conn: -1}
	if err := c.commit(p); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = wait4(pid, 0)
		return nil, err
	}
	return p, nil
}

// stepError gives an error of the fork or exec its type.
func stepError(stage Stage, name string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return &StepError{Stage: stage, Name: name, Errno: errno}
	}
	return fmt.Errorf("%s: %s: %w", stage, name, err)
}

// startHelped starts the helper, gives it its orders, and waits until the
// command is executed. The helper itself runs with no environment: what the
// command gets must not change what happens before the profile is on.
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
		_, _ = orderW.WriteString(orders) // a helper that ended says so below
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

// readReports reads until the helper is gone, or is the command by now.
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

// execSelf puts the profile on this process and becomes the command.
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
