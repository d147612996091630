package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is the keeper's loop, which waits for the caller, signals, children and the clock.
// Before it, keeper_begin_linux.go blocks signals, proves the domain, starts the command and
// closes descriptors. keeper_end_linux.go kills what is left. The keeper ends when wait4(2)
// returns ECHILD, and writes that into the state.

// keeperMem is the memory that the new processes write to. They share it with each other and
// with the caller, until the caller releases it.
type keeperMem struct {
	report  stepReport
	keeper  int   // the keeper's own pid
	command int32 // the command's pid; 0 once it was reaped

	// All descriptors of a running keeper; -1 for none.
	conn       int32   // to the caller; -1 once that is gone
	signals    uintptr // the signalfd
	held       int32   // from the step with Hold
	stateFile  int32   // Keeper.State
	cgroupKill int32   // Keeper.CgroupKill
	terminal   int32   // Command.Restore

	settings, changed, found unix.Termios // of the terminal

	sockets socketMem

	limit     int64 // Command.Limit, in nanoseconds
	killAfter int64
	patience  int64 // until when what the command left may run on, if it uses the processor
	used      int   // the processor time that it had used at the last look, in ticks
	deadline  int64 // when act has something to do, in nanoseconds of CLOCK_MONOTONIC; 0 for never
	again     int64 // nanoseconds after which to look for ended children at the latest; 0 for no limit

	domain  bool // kill(-1) reaches only the session
	inner   bool // it has its own PID namespace, with other process numbers
	keep    bool
	killing bool
	strikes uint
	early   uint64 // a bit for each signal that came before the command was started

	state KeeperState
	msg   message
	owed  message // Exited, which the caller had no room for; without a kind nothing
	mask  uint64
	ts    [2]int64
	polls [3]unix.PollFd
	info  unix.SignalfdSiginfo
	text  [4096]byte
	path  [32]byte
	stat  [512]byte

	family [family]kin // each at its pid modulo family; a later one replaces an earlier one

	stack        stack // of the first new process
	commandStack stack // of the command, below a keeper
}

// family is for how many processes the keeper remembers that they descend from it. What is not
// used takes no memory.
const family = 1 << 13

// stack is the stack of a new process, which can't grow. What runs there needs less than two
// kilobytes. The lower half has what Go takes for the goroutine.
type stack [16 << 10]byte

// top returns the stack's end, from which it grows downwards.
//
//go:norace
func (s *stack) top() uintptr { return (uintptr(unsafe.Pointer(s)) + unsafe.Sizeof(*s)) &^ 15 }

// grace is how long, in nanoseconds, what the command leaves behind may run without Keep. It is
// long enough for the cat in sh -c 'echo > >(cat)' to write its input, and too short to be
// noticed.
const grace = 300e6

// longestGrace is how long it may run if it uses the processor, since it may be about to end, as
// the helpers of Python's multiprocessing are, on a busy machine. anotherGrace is how often the
// keeper looks. Of more than fewLeft processes none gets that time.
const (
	longestGrace = 3e9
	anotherGrace = 100e6
	fewLeft      = 4
)

// runKeeper starts the command and stays until the session is empty. It never
// returns.
//
//go:norace
func runKeeper(j *image) {
	m := j.mem
	call(unix.SYS_CLOSE, uintptr(j.peer), 0, 0, 0, 0, 0) // else the caller's end would never be closed
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
		m.pay()
		m.wait(m.act())
		m.hear()
		m.serveSockets()
		m.listenSignals()
		m.reap(j)
	}
}

// quit ends a keeper that has started nothing, and records that. If the caller lives it may try
// again with another keeper. If it is gone, nothing is left.
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

// act does what is due. It returns the nanoseconds until something else is due, or 0 for never.
//
//go:norace
func (m *keeperMem) act() int64 {
	now := m.now()
	if m.killing {
		return m.strikeAgain(now)
	}
	if m.deadline == 0 || now < m.deadline {
		return max(m.deadline-now, 0)
	}
	if m.command == 0 && now < m.patience && m.busy() {
		m.deadline = now + anotherGrace
		return anotherGrace
	}
	// The time for what the command left is over, or the time between SIGTERM and SIGKILL.
	if m.command == 0 || m.state.TimedOut != 0 {
		m.beginKilling()
		return m.strikeAgain(now)
	}
	m.state.TimedOut = 1
	m.deadline = 0
	if m.killAfter > 0 {
		m.deadline = now + m.killAfter
	}
	m.signal(uint32(unix.SIGTERM))
	m.setPhase(m.state.Phase)
	m.tell(TimedOut, 0)
	return m.killAfter
}

// wait sleeps until there is something to do, for at most rest nanoseconds, or without a limit
// for 0.
//
//go:norace
func (m *keeperMem) wait(rest int64) {
	m.polls[0] = unix.PollFd{Fd: int32(m.signals), Events: unix.POLLIN}
	m.polls[1] = unix.PollFd{Fd: m.conn, Events: unix.POLLIN}
	m.polls[2] = unix.PollFd{Fd: m.sockets.conn, Events: unix.POLLIN}
	if m.again > 0 && (rest == 0 || rest > m.again) {
		rest = m.again
	}
	m.again = 0
	ts := uintptr(0)
	if rest > 0 {
		m.ts[0] = rest / 1e9
		m.ts[1] = rest % 1e9
		ts = uintptr(unsafe.Pointer(&m.ts))
	}
	call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&m.polls)), 3, ts, 0, 0, 0)
}

// now returns the time of CLOCK_MONOTONIC in nanoseconds.
//
//go:norace
func (m *keeperMem) now() int64 {
	call(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&m.ts)), 0, 0, 0, 0)
	return m.ts[0]*1e9 + m.ts[1]
}

// receive takes one message from the caller. It returns 0 if the caller is gone.
//
//go:norace
func (m *keeperMem) receive(flags uintptr) int {
	return call(unix.SYS_RECVFROM, uintptr(m.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg), flags, 0, 0)
}

// hear does what the caller asks for, or notices that the caller is gone.
//
//go:norace
func (m *keeperMem) hear() {
	if m.conn < 0 || m.polls[1].Revents == 0 {
		return
	}
	r := m.receive(unix.MSG_DONTWAIT)
	if r == -int(unix.EAGAIN) || r == -int(unix.EINTR) {
		return
	}
	if r <= 0 {
		m.hungUp()
		return
	}
	switch m.msg.kind {
	case msgSignal:
		m.signal(m.msg.arg)
	case msgKill:
		m.beginKilling()
	}
}

// hungUp does what is due when the caller is gone.
//
//go:norace
func (m *keeperMem) hungUp() {
	call(unix.SYS_CLOSE, uintptr(m.conn), 0, 0, 0, 0, 0)
	m.conn = -1
	m.restoreTerminal()
	if !m.keep {
		m.beginKilling()
	}
}

// signal passes a signal on to the command. After one that should end the command it sends
// SIGCONT, in case the command is stopped, as the kernel does when a terminal closes. The
// command is this process's child and not yet reaped, so the pid is certainly its own.
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

// listenSignals empties the signalfd. Only ReapSignal and endInTime's SIGPROF matter. Children
// are reaped after every wake-up anyway.
//
//go:norace
func (m *keeperMem) listenSignals() {
	const size = int(unsafe.Sizeof(m.info))
	for call(unix.SYS_READ, m.signals, uintptr(unsafe.Pointer(&m.info)), uintptr(size), 0, 0, 0) == size {
		if sig := m.info.Signo; sig == uint32(ReapSignal) || sig == uint32(unix.SIGPROF) {
			m.beginKilling()
		}
	}
}

// reapsAtOnce is how many children are reaped before the keeper looks at the clock and the
// caller again. A command can end children faster than they are reaped, since reaping one takes
// longer the more there are. If there may be more, again is thereIsMore.
const (
	reapsAtOnce = 16
	thereIsMore = 1
)

// reap reaps ended children. ECHILD proves that the session is empty, since this process is the
// subreaper of all of it.
//
//go:norace
func (m *keeperMem) reap(j *image) {
	var status uint32
	for range reapsAtOnce {
		const all = unix.WNOHANG | unix.WUNTRACED | unix.WALL
		pid := call(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), all, 0, 0, 0)
		switch pid {
		case -int(unix.ECHILD):
			m.setPhase(PhaseEmpty)
			m.tell(Emptied, m.state.Killed)
			exit(0)
		case -int(unix.EINTR):
			continue
		case 0:
			return
		}
		if pid < 0 {
			m.again = 10e6
			return
		}
		m.reaped(int32(pid), status)
	}
	m.again = thereIsMore
}

// reaped handles one status of one child. It is encoded as by wait4(2): 0x7f for stopped, else
// ended.
//
//go:norace
func (m *keeperMem) reaped(pid int32, status uint32) {
	if stopped := status&0xff == 0x7f; stopped {
		if pid == m.command {
			m.tell(Stopped, status>>8&0xff)
		}
		return
	}
	if m.killing && status&0x7f == uint32(unix.SIGKILL) { // zombies ended by themselves
		m.state.Killed++
	}
	if pid != m.command {
		return
	}
	m.command = 0
	m.state.WaitStatus = status
	if m.killing {
		m.tell(Exited, status|killedToo)
		return
	}
	if m.keep {
		m.setPhase(PhaseKept) // before tell, since the caller may read it at once
	}
	told := m.tell(Exited, status)
	switch {
	case m.keep && told:
		m.deadline = 0
	case m.keep || m.state.TimedOut != 0: // the caller would not learn of the end, or the time is over
		m.beginKilling()
	default:
		m.deadline = m.now() + grace
		m.patience = m.deadline + longestGrace - grace
		m.used = -1
	}
}

// tell sends a message to the caller. If the kernel lacks memory, it tries for a tenth of a
// second, and returns false if that does not help. A caller that does not read can't block the
// keeper. What it misses is in the state file at the end. With Keep that may never come, so pay
// sends Exited later.
//
//go:norace
func (m *keeperMem) tell(kind EventKind, arg uint32) bool {
	if m.conn < 0 {
		return true
	}
	m.msg.kind = kind
	m.msg.arg = arg
	for tries := 0; tries < 100; tries++ {
		r := call(unix.SYS_SENDTO, uintptr(m.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if r == -int(unix.EAGAIN) && kind == Exited {
			m.owed = m.msg
		}
		if r != -int(unix.ENOBUFS) && r != -int(unix.ENOMEM) && r != -int(unix.EINTR) {
			return true
		}
		m.pause()
	}
	return false
}

// pause sleeps for a millisecond.
//
//go:norace
func (m *keeperMem) pause() {
	m.ts[0] = 0
	m.ts[1] = 1e6
	call(unix.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(&m.ts)), 0, 0, 0)
}

// pay sends what is owed, or tries again a moment later.
//
//go:norace
func (m *keeperMem) pay() {
	if m.owed.kind == 0 || m.conn < 0 {
		return
	}
	owed := m.owed
	m.owed.kind = 0
	if !m.tell(owed.kind, owed.arg) || m.owed.kind != 0 {
		m.owed = owed
		m.again = 10e6
	}
}

// setPhase writes the state into the state file.
//
//go:norace
func (m *keeperMem) setPhase(p Phase) {
	m.state.Magic = KeeperMagic
	m.state.Phase = p
	m.state.CommandPid = m.command
	if m.inner {
		m.state.CommandPid = 0
	}
	if m.stateFile >= 0 {
		call(unix.SYS_PWRITE64, uintptr(m.stateFile),
			uintptr(unsafe.Pointer(&m.state)), unsafe.Sizeof(m.state), 0, 0, 0)
	}
}
