package fork

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func execSelf(c *Command) error {
	if err := c.prepare(); err != nil {
		return err
	}
	var m Memory
	defer m.free()
	j, err := newImage(c, &m)
	if err != nil {
		return err
	}
	defer j.release()
	// Never unlocked: what the steps do to this thread must reach exec and
	// nothing else.
	runtime.LockOSThread()
	if err := makeSteps("before", c.Before); err != nil {
		return err
	}
	if c.Keeper != nil {
		p, err := startWatcher(c, j)
		if err != nil {
			return err
		}
		if c.Meanwhile != nil {
			c.Meanwhile(p)
		}
		if err := c.commit(p); err != nil {
			return err
		}
	}
	if c.Dir != "" {
		if err := syscall.Chdir(c.Dir); err != nil {
			return &StepError{Stage: "command", Name: "chdir to " + c.Dir, Errno: err.(syscall.Errno)}
		}
	}
	for i, f := range c.Files {
		if f != nil && f.Fd() != uintptr(i) {
			if err := unix.Dup3(int(f.Fd()), i, 0); err != nil {
				return fmt.Errorf("dup3: %w", err)
			}
		}
	}
	closeOnExec(j)
	if err := makeSteps("command", c.Steps); err != nil {
		return err
	}
	err = syscall.Exec(c.Path, c.Args, c.Env)
	runtime.KeepAlive(c)
	errno, _ := err.(syscall.Errno)
	return &StepError{Stage: "exec", Name: c.Path, Errno: errno}
}

// makeSteps makes the steps in this thread.
func makeSteps(stage string, steps []Step) error {
	for i := range steps {
		s := &steps[i]
		s.args(steps, i)
		r, _, errno := syscall.RawSyscall6(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Args[3], s.Args[4], s.Args[5])
		s.result = r
		switch {
		case errno != 0 && !s.MayFail:
			return &StepError{Stage: stage, Name: s.Name, Errno: errno}
		case s.Same.differs():
			return &StepError{Stage: stage, Name: s.Name, Errno: unix.ESTALE}
		case errno == 0 && s.Out != nil:
			*s.Out = r
		}
	}
	return nil
}

// startWatcher puts this thread into the keeper's domain and forks the keeper
// from it, twice, so that the command does not find it among its children. A
// canary, forked before, is the process outside of the domain by which the
// keeper proves it.
func startWatcher(c *Command, j *image) (*Process, error) {
	release, err := startCanary(j)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := makeSteps("keeper", c.Keeper.Steps); err != nil {
		return nil, err
	}
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	defer syscall.Close(pidfd)
	j.role, j.watched, j.lean = roleWatcher, int32(pidfd), false
	p := &Process{}
	if p.conn, err = j.connect(); err != nil {
		return nil, err
	}
	// The pid is the one between; the keeper tells its own.
	p.KeeperPid, err = forkImage(j)
	syscall.Close(int(j.conn))
	if err != nil {
		p.close()
		return nil, fmt.Errorf("fork: %w", err)
	}
	if err := p.confirm(j, c); err != nil {
		p.abandon()
		return nil, err
	}
	p.waitKeeper()
	p.KeeperPid, p.Pid = p.Pid, os.Getpid()
	return p, p.close()
}

// startCanary forks a process that waits to be released.
func startCanary(j *image) (release func(), err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	canary := &image{role: roleCanary, conn: int32(fds[0]), watched: int32(fds[1])}
	pid, err := forkImage(canary)
	syscall.Close(fds[0])
	if err != nil {
		syscall.Close(fds[1])
		return nil, fmt.Errorf("fork: %w", err)
	}
	j.outsider = uintptr(pid)
	return func() {
		syscall.Close(fds[1])
		(&Process{KeeperPid: pid}).waitKeeper()
	}, nil
}

// runCanary waits until the caller closes its end of the pipe. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runCanary(j *image) {
	call(unix.SYS_CLOSE, uintptr(j.watched), 0, 0, 0, 0, 0)
	for call(unix.SYS_READ, uintptr(j.conn), uintptr(unsafe.Pointer(&j.sigmask)), 1, 0, 0, 0) == -int(unix.EINTR) {
	}
	for {
		call(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// runWatcher is the keeper of a process that is not its child. It never
// returns. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runWatcher(j *image) {
	m := j.mem
	blockSignals(j)
	proveDomain(j)
	if pid := call(unix.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
		if pid < 0 {
			quit(j, stageSetup, setupFork, pid)
		}
		for {
			call(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
		}
	}
	m.command, m.conn = int32(j.self), j.conn
	tell(m, msgStarted, uint32(call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)))
	// From here on the connection is the pidfd: readable once the process
	// ended. The caller sees its own end closed.
	j.conn = j.watched
	settle(j, m)
	setPhase(m, PhaseRunning)
	for {
		m.watch()
	}
}

// watch is one round of a watcher: it sleeps, looks whether the process ended
// or a ReapSignal came, and strikes until no member is left. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) watch() {
	m.polls[0] = pollFd{fd: m.signals, events: unix.POLLIN}
	m.polls[1] = pollFd{fd: m.conn, events: unix.POLLIN}
	ts, rest := uintptr(0), m.graceLeft()
	switch {
	case m.killing:
		m.ts[0], m.ts[1], ts = 0, 2e6, uintptr(unsafe.Pointer(&m.ts))
	case rest > 0:
		m.ts[0], m.ts[1], ts = 0, min(rest, 2e6), uintptr(unsafe.Pointer(&m.ts))
	case m.conn < 0:
		m.ts[0], m.ts[1], ts = 1, 0, uintptr(unsafe.Pointer(&m.ts))
	}
	call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&m.polls)), 2, ts, 0, 0, 0)
	m.listenSignals()
	if m.conn >= 0 && m.polls[1].revents != 0 {
		m.conn, m.command, m.left = -1, 0, m.now()
		if m.keep {
			setPhase(m, PhaseKept)
		}
	}
	if m.killing {
		if m.strikes++; m.strikes == 1 {
			m.state.Killed = uint32(max(m.members(), 0))
		}
		m.strike()
	}
	if (m.killing || m.conn < 0) && m.members() == 0 {
		m.finish()
	}
}

// members counts the living processes, but this one, that this one may signal:
// those of its domain. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) members() int {
	proc := m.openProc()
	if proc < 0 {
		return -1
	}
	self := call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	count, at := 0, m.nextPid(proc, -1)
	for ; at >= 0; at = m.nextPid(proc, at) {
		if pid := m.pid; pid != self && maySignal(uintptr(pid)) == 0 && m.living(proc, pid) {
			count++
		}
	}
	call(unix.SYS_CLOSE, uintptr(proc), 0, 0, 0, 0, 0)
	if at < -1 {
		return -1
	}
	return count
}
