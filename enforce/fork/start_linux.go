package fork

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// start forks and waits until the command was executed or something on the
// way to that failed.
func start(c *Command) (*Process, error) {
	j, err := newImage(c)
	if err != nil {
		return nil, err
	}
	defer j.release()
	status, err := j.openChannels(c)
	if err != nil {
		return nil, err
	}
	pid, err := forkImage(j)
	syscall.Close(int(j.status))
	if j.role == roleKeeper {
		syscall.Close(int(j.conn))
	}
	if err != nil {
		status.Close()
		if c.Keeper != nil {
			syscall.Close(j.peer)
		}
		return nil, fmt.Errorf("fork: %w", err)
	}
	p := &Process{conn: -1}
	if j.role == roleKeeper {
		p.KeeperPid, p.conn = pid, j.peer
	} else {
		p.Pid = pid
	}
	if c.Meanwhile != nil {
		c.Meanwhile(p)
	}
	if j.role == roleKeeper {
		// Should it fail, the status pipe tells why.
		p.send(message{kind: msgGo})
	}
	if err := p.confirm(status, c); err != nil {
		return nil, err
	}
	runtime.KeepAlive(j)
	runtime.KeepAlive(c)
	return p, nil
}

// openChannels makes the pipe that closes on exec, whose reading end it
// returns, and the keeper's connection.
func (j *image) openChannels(c *Command) (*os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	j.status = int32(fds[1])
	status := os.NewFile(uintptr(fds[0]), "status pipe")
	if c.Keeper == nil {
		return status, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		status.Close()
		syscall.Close(fds[1])
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	j.conn, j.peer = int32(pair[0]), pair[1]
	return status, nil
}

// confirm reads the status pipe to its end. Nothing in it means that exec
// closed it.
func (p *Process) confirm(status *os.File, c *Command) error {
	defer status.Close()
	var r stepReport
	n, err := readFull(int(status.Fd()), unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)))
	if err != nil {
		p.abandon()
		return fmt.Errorf("reading the new process's status: %w", err)
	}
	if n == int(unsafe.Sizeof(r)) {
		p.abandon()
		return r.err(c)
	}
	if p.conn < 0 {
		return nil
	}
	ev, err := p.receive()
	if err != nil || ev.kind != msgStarted {
		p.abandon()
		return ErrKeeperLost
	}
	p.Pid = int(ev.arg)
	return nil
}

// readFull reads until buf is full or the other side is closed.
func readFull(fd int, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := syscall.Read(fd, buf[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return n, nil
}

// abandon waits for a process that ended before it executed anything.
func (p *Process) abandon() {
	if p.conn >= 0 {
		syscall.Close(p.conn)
		p.conn = -1
	}
	pid := p.Pid
	if p.KeeperPid != 0 {
		pid = p.KeeperPid
	}
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// stepReport is what a child writes into the status pipe when it gives up.
type stepReport struct{ stage, index, errno uint32 }

const (
	stageKeeper  = iota + 1 // index into Keeper.Steps
	stageCommand            // index into Command.Steps
	stageSetup              // index is one of the setup constants
	stageExec
	stageDomain // the keeper's domain was not proved
)

// What a child sets up by itself, for the messages.
const (
	setupFork = iota
	setupDir
	setupFiles
	setupCloseRange
	setupSubreaper
	setupSignals
)

var setupNames = [...]string{"clone(2)", "chdir(2)", "dup3(2)", "close_range(2)", "prctl(PR_SET_CHILD_SUBREAPER)", "signalfd4(2)"}

func (r *stepReport) err(c *Command) error {
	e := &StepError{Errno: syscall.Errno(r.errno)}
	switch {
	case r.stage == stageKeeper && int(r.index) < len(c.Keeper.Steps):
		e.Stage, e.Name = "keeper", c.Keeper.Steps[r.index].Name
	case r.stage == stageCommand && int(r.index) < len(c.Steps):
		e.Stage, e.Name = "command", c.Steps[r.index].Name
	case r.stage == stageSetup && r.index == setupDir:
		e.Stage, e.Name = "command", "chdir to "+c.Dir
	case r.stage == stageSetup && int(r.index) < len(setupNames):
		e.Stage, e.Name = "setup", setupNames[r.index]
	case r.stage == stageExec:
		e.Stage, e.Name = "exec", c.Path
	case r.stage == stageDomain:
		return fmt.Errorf("%w (kill of the caller: errno %d)", ErrNoDomain, r.errno)
	default:
		return errors.New("the new process reported nonsense")
	}
	return e
}
