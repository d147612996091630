package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The keeper's life. It begins with keeper_begin_linux.go: signals blocked, its domain
// proved, the command started, all descriptors dropped that it does not need. This file
// is its loop: it waits for the caller, signals, children and the clock.
// keeper_end_linux.go kills what is left. It ends when wait4(2) says ECHILD, and writes
// that into the state.

// keeperMem is the memory that the new processes write to: shared by all of
// them and the caller, until the caller lets go of it.
type keeperMem struct {
	report  stepReport
	keeper  int   // the keeper's own pid
	command int32 // the command's pid; 0 once it was reaped

	// The descriptors of a running keeper, and no others; -1 for none.
	conn       int32   // to the caller; -1 once that is gone
	signals    uintptr // by which it hears signals
	held       int32   // that of the step with Hold
	stateFile  int32   // Keeper.State
	cgroupKill int32   // Keeper.CgroupKill

	limit     int64 // Command.Limit, in nanoseconds
	killAfter int64
	deadline  int64 // when act does the next thing, by CLOCK_MONOTONIC in nanoseconds; 0 for never
	again     int64 // in how many nanoseconds to ask for ended children at the latest; 0 for whenever one ends

	domain  bool // kill(-1) reaches the session and nothing else
	inner   bool // in a PID namespace of its own: numbers here are other ones there
	keep    bool
	killing bool
	strikes uint
	early   uint64 // a bit for each signal to the command that came before it was there

	state KeeperState
	msg   message
	mask  uint64
	ts    [2]int64
	polls [2]unix.PollFd
	info  unix.SignalfdSiginfo
	text  [4096]byte
	path  [32]byte
	stat  [512]byte

	stack        stack // of the first new process
	commandStack stack // of the command, below a keeper
}

// stack is that of a new process, which can't grow. What runs there needs less than two
// kilobytes of it in all. In the lower half is what Go takes for a goroutine.
type stack [16 << 10]byte

// top is where it ends: it grows downwards.
//
//go:norace
func (s *stack) top() uintptr { return (uintptr(unsafe.Pointer(s)) + unsafe.Sizeof(*s)) &^ 15 }

// grace is how long what the command leaves behind may go on after it without
// Keep, in nanoseconds: long enough for the cat of sh -c 'echo > >(cat)' to
// write what it was given, too short to be noticed.
const grace = 300e6

// runKeeper starts the command and stays until the session is empty. It never
// returns.
//
//go:norace
func runKeeper(j *image) {
	m := j.mem
	call(unix.SYS_CLOSE, uintptr(j.peer), 0, 0, 0, 0, 0) // or the caller's end would never be closed
	if !j.runSteps(j.before, stageBefore) {
		m.quit()
	}
	dropHandlers()
	if !j.prove() || !m.awaitGo() {
		m.quit()
	}
	pid := spawn(j)
	if pid < 0 {
		j.fail(stageFork, 0, pid)
	}
	if m.report.stage != stageNone {
		m.quit()
	}
	m.begin(j, pid)
	for {
		m.wait(m.act())
		m.hear()
		m.listenSignals()
		m.reap(j)
	}
}

// quit ends a keeper that has started nothing, and says so. A caller that lives may try
// again with another; where it is gone, nothing is left.
//
//go:norace
func (m *keeperMem) quit() {
	r := 1
	for r > 0 {
		r = m.receive(unix.MSG_DONTWAIT)
	}
	if r == 0 {
		m.setPhase(PhaseEmpty)
	} else {
		m.setPhase(PhaseFailed)
	}
	exit(125)
}

// act does what is due, and gives the nanoseconds until something is again; 0 is for ever.
//
//go:norace
func (m *keeperMem) act() int64 {
	now := m.now()
	switch {
	case m.killing:
		return m.strikeAgain(now)
	case m.deadline == 0 || now < m.deadline:
		return max(m.deadline-now, 0)
	case m.command == 0 || m.state.TimedOut != 0: // what it left has had its time
		m.beginKilling()
		return m.strikeAgain(now)
	}
	m.state.TimedOut = 1
	if m.deadline = 0; m.killAfter > 0 {
		m.deadline = now + m.killAfter
	}
	m.signal(uint32(unix.SIGTERM))
	m.setPhase(m.state.Phase)
	m.tell(TimedOut, 0)
	return m.killAfter
}

// wait sleeps until there is something to do, for rest nanoseconds at most; 0 is for ever.
//
//go:norace
func (m *keeperMem) wait(rest int64) {
	m.polls[0] = unix.PollFd{Fd: int32(m.signals), Events: unix.POLLIN}
	m.polls[1] = unix.PollFd{Fd: m.conn, Events: unix.POLLIN}
	if m.again > 0 && (rest == 0 || rest > m.again) {
		rest = m.again
	}
	m.again = 0
	ts := uintptr(0)
	if rest > 0 {
		m.ts[0], m.ts[1] = rest/1e9, rest%1e9
		ts = uintptr(unsafe.Pointer(&m.ts))
	}
	call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&m.polls)), 2, ts, 0, 0, 0)
}

// now is the time by CLOCK_MONOTONIC, in nanoseconds.
//
//go:norace
func (m *keeperMem) now() int64 {
	call(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&m.ts)), 0, 0, 0, 0)
	return m.ts[0]*1e9 + m.ts[1]
}

// receive takes one message of the caller. It gives 0 when that is gone.
//
//go:norace
func (m *keeperMem) receive(flags uintptr) int {
	return call(unix.SYS_RECVFROM, uintptr(m.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg), flags, 0, 0)
}

// hear does what the caller asks for, or notices that it is gone.
//
//go:norace
func (m *keeperMem) hear() {
	if m.conn < 0 || m.polls[1].Revents == 0 {
		return
	}
	r := m.receive(unix.MSG_DONTWAIT)
	switch {
	case r == -int(unix.EAGAIN) || r == -int(unix.EINTR):
	case r <= 0:
		call(unix.SYS_CLOSE, uintptr(m.conn), 0, 0, 0, 0, 0)
		m.conn = -1
		if !m.keep {
			m.beginKilling()
		}
	case m.msg.kind == msgSignal:
		m.signal(m.msg.arg)
	case m.msg.kind == msgKill:
		m.beginKilling()
	}
}

// signal passes a signal on to the command. One that is to end it finds it stopped,
// perhaps, and wakes it, as the kernel does when a terminal closes. The command is this
// process's own child and not yet reaped: the pid is its, whatever happens.
//
//go:norace
func (m *keeperMem) signal(sig uint32) {
	const ending = 1<<unix.SIGHUP | 1<<unix.SIGINT | 1<<unix.SIGQUIT | 1<<unix.SIGTERM
	if m.command == 0 {
		return
	}
	call(unix.SYS_KILL, uintptr(m.command), uintptr(sig), 0, 0, 0, 0)
	if 1<<(sig&31)&ending != 0 {
		call(unix.SYS_KILL, uintptr(m.command), uintptr(unix.SIGCONT), 0, 0, 0, 0)
	}
}

// listenSignals empties the signalfd. Only ReapSignal means anything, and what endInTime
// asked for; the children are looked at after every wake-up.
//
//go:norace
func (m *keeperMem) listenSignals() {
	for call(unix.SYS_READ, m.signals, uintptr(unsafe.Pointer(&m.info)), unsafe.Sizeof(m.info), 0, 0, 0) == int(unsafe.Sizeof(m.info)) {
		if sig := m.info.Signo; sig == uint32(ReapSignal) || sig == uint32(unix.SIGPROF) {
			m.beginKilling()
		}
	}
}

// reapsAtOnce is how many children are collected before the clock and the caller
// are looked at again: a command can end children faster than they are collected,
// each of which takes as long as there are others. There may be more is what again says
// then.
const (
	reapsAtOnce = 16
	thereIsMore = 1
)

// reap collects what ended. With ECHILD the session is empty, which is the
// proof: this process is the subreaper of all of it.
//
//go:norace
func (m *keeperMem) reap(j *image) {
	var status uint32
	for range reapsAtOnce {
		const all = unix.WNOHANG | unix.WUNTRACED | unix.WALL
		pid := call(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), all, 0, 0, 0)
		switch {
		case pid == -int(unix.ECHILD):
			m.setPhase(PhaseEmpty)
			m.tell(Emptied, m.state.Killed)
			j.leaveRest()
			exit(0)
		case pid == 0:
			return
		case pid > 0:
			m.reaped(int32(pid), status)
		case pid != -int(unix.EINTR):
			m.again = 10e6
			return
		}
	}
	m.again = thereIsMore
}

// reaped handles one status of one child. The encoding is wait4(2)'s: 0x7f
// stopped, else ended.
//
//go:norace
func (m *keeperMem) reaped(pid int32, status uint32) {
	if stopped := status&0xff == 0x7f; stopped {
		if pid == m.command {
			m.tell(Stopped, status>>8&0xff)
		}
		return
	}
	if m.killing && status&0x7f == uint32(unix.SIGKILL) { // a zombie's end was its own
		m.state.Killed++
	}
	if pid != m.command {
		return
	}
	m.command, m.state.WaitStatus = 0, status
	if m.killing {
		m.tell(Exited, status|killedToo)
		return
	}
	if m.keep {
		m.setPhase(PhaseKept) // whoever hears of the end may ask at once
	}
	told := m.tell(Exited, status)
	switch {
	case m.keep && told:
		m.deadline = 0
	case m.keep || m.state.TimedOut != 0: // the caller would wait for what goes on; or it has had its time
		m.beginKilling()
	default:
		m.deadline = m.now() + grace
	}
}

// tell sends a message to the caller, again for a tenth of a second where the
// kernel has no memory for it; it reports whether it had in the end. A caller that
// does not read can't block the keeper; what it has missed at the end stands in
// the state file.
//
//go:norace
func (m *keeperMem) tell(kind EventKind, arg uint32) bool {
	if m.conn < 0 {
		return true
	}
	m.msg.kind, m.msg.arg = kind, arg
	for tries := 0; tries < 100; tries++ {
		r := call(unix.SYS_SENDTO, uintptr(m.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if r != -int(unix.ENOBUFS) && r != -int(unix.ENOMEM) && r != -int(unix.EINTR) {
			return true
		}
		m.ts[0], m.ts[1] = 0, 1e6
		call(unix.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(&m.ts)), 0, 0, 0)
	}
	return false
}

// setPhase writes the state down.
//
//go:norace
func (m *keeperMem) setPhase(p Phase) {
	m.state.Magic, m.state.Phase, m.state.CommandPid = KeeperMagic, p, m.command
	if m.inner {
		m.state.CommandPid = 0
	}
	if m.stateFile >= 0 {
		call(unix.SYS_PWRITE64, uintptr(m.stateFile), uintptr(unsafe.Pointer(&m.state)), unsafe.Sizeof(m.state), 0, 0, 0)
	}
}
