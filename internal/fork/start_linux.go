package fork

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This file starts a command. newImage prepares what the new processes need (image_linux.go).
// forkImage makes the keeper (child_linux.go). release tells the keeper to continue. confirm
// waits until execve(2) succeeded or a step failed. A report in shared memory says what failed.

// start forks and waits until the command was executed or something failed.
func start(c *Command) (*Process, error) {
	if c.Keeper == nil {
		c.Keeper = &Keeper{}
	}
	j, err := newImage(c)
	if err != nil {
		return nil, err
	}
	defer j.release()
	p, err := j.fork(c)
	if err != nil {
		return nil, err
	}
	err = c.commit(p)
	if err == nil {
		err = p.release(c)
	}
	if err == nil {
		err = p.confirm(j, c)
	}
	if err != nil {
		p.abandon()
		return nil, err
	}
	p.startClock(c)
	runtime.KeepAlive(c)
	return p, nil
}

// fork makes the keeper, and the connection to it.
func (j *image) fork(c *Command) (*Process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	j.mem.conn = int32(pair[0])
	j.peer = int32(pair[1])
	pid, err := forkImage(j)
	syscall.Close(pair[0])
	if err != nil {
		syscall.Close(pair[1])
		if errno, _ := err.(syscall.Errno); c.Namespaces != 0 && errno != 0 {
			return nil, &StepError{Stage: StageBefore, Tag: TagNamespaces, Name: "clone(2)", Errno: errno}
		}
		return nil, fmt.Errorf("fork: %w", err)
	}
	return &Process{conn: pair[1], limit: c.Limit, KeeperPid: pid, keep: c.Keeper.Keep}, nil
}

// startTime is how long a keeper may take to start the command before it counts as stopped by
// somebody outside, and is woken.
const startTime = time.Second

// release tells the keeper to start the command, and waits for an answer.
func (p *Process) release(c *Command) error {
	switch err := p.send(message{kind: msgGo}); err {
	case nil:
	case os.ErrProcessDone:
		return nil // the keeper is gone and has reported why
	default:
		return fmt.Errorf("telling the keeper to start the command: %w", err)
	}
	if p.polled(unix.POLLIN, startTime) {
		return nil
	}
	// The command's file system hangs, or the keeper was stopped.
	_ = syscall.Kill(p.KeeperPid, syscall.SIGCONT)
	wait := time.Duration(-1)
	if c.Limit.Time > 0 {
		wait = c.Limit.Time
	}
	if !p.polled(unix.POLLIN, wait) {
		p.stuck = true
		return fmt.Errorf("the command could not be started within %s", c.Limit.Time)
	}
	return nil
}

// confirm finds out whether the command was executed. The keeper says so, or the report in
// shared memory says what failed. If the keeper is gone without saying anything, but only
// execve(2) was left to do, it may have started the command. Then confirm succeeds with Pid 0,
// and Next returns the error.
func (p *Process) confirm(j *image, c *Command) error {
	m, err := p.receive()
	switch {
	case err == nil && m.kind == msgStarted:
		p.Pid = int(m.arg)
		if c.Namespaces != 0 {
			p.Pid = OuterPid(p.KeeperPid, p.Pid)
		}
		return nil
	case j.mem.report.stage != stageNone:
		return j.mem.report.err(c)
	}
	p.collectKeeper() // after that its children are being killed (PR_SET_PDEATHSIG)
	if j.mem.report.begun == 0 {
		return ErrKeeperLost
	}
	return nil
}

// abandon gives up a start. The keeper ends when the connection is closed; a stuck one ends
// when it can.
func (p *Process) abandon() {
	p.close()
	if !p.stuck {
		_ = syscall.Kill(p.KeeperPid, syscall.SIGCONT)
		p.waitKeeper()
	}
}

// execSelf prepares the calling thread and executes the command. execve(2) ends all other
// threads. Package syscall's Exec keeps the runtime from making threads meanwhile.
func execSelf(c *Command) error {
	j, err := newImage(c)
	if err != nil {
		return err
	}
	defer j.release()
	if j.runSteps(j.before, stageBefore) && j.prepare() {
		errno, _ := syscall.Exec(c.Path, c.Args, c.Env).(syscall.Errno)
		j.fail(stageExec, 0, -int(errno))
	}
	return j.mem.report.err(c)
}

// sandboxMain is for macOS.
func sandboxMain() int { return 125 }

// stepReport is what a child writes when it gives up. begun says that only execve(2) is left to
// do.
type stepReport struct{ stage, index, errno, begun uint32 }

// What a child was doing when something failed.
const (
	stageNone    = iota // nothing failed
	stageBefore         // index into Command.before
	stageCommand        // index into Command.steps
	stageExec           // the command
	stageDomain         // the keeper's domain was not proved
	stageFork           // the fork of the command
)

func (r *stepReport) err(c *Command) error {
	e := &StepError{Errno: syscall.Errno(r.errno)}
	switch r.stage {
	case stageNone:
		return nil
	case stageDomain:
		return fmt.Errorf("%w (kill of the caller: errno %d)", ErrNoDomain, r.errno)
	case stageBefore:
		s := &c.before[r.index]
		e.Stage = StageBefore
		e.Tag = s.Tag
		e.Name = s.Name
		if c.Keeper != nil && int(r.index) >= len(c.before)-len(c.Keeper.Steps) {
			e.Stage = StageKeeper
		}
	case stageCommand:
		s := &c.steps[r.index]
		e.Stage = StageCommand
		e.Tag = s.Tag
		e.Name = s.Name
	case stageExec:
		e.Stage = StageExec
		e.Name = c.Path
	case stageFork:
		return fmt.Errorf("fork of the command: %w", e.Errno)
	}
	return e
}
