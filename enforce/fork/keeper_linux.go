package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// grace is how long what the command leaves behind may go on after it without
// Keep, in nanoseconds: long enough for the cat of sh -c 'echo > >(cat)' to
// write what it was given, too short to be noticed.
const grace = 300e6

// runKeeper starts the command and stays until the session is empty. It never
// returns. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runKeeper(j *image) {
	m := j.mem
	blockSignals(j)
	if r := call(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0); r < 0 {
		quit(j, stageSetup, setupSubreaper, r)
	}
	runSteps(j, j.before, stageBefore)
	runSteps(j, j.keeperSteps, stageKeeper)
	if j.domain {
		proveDomain(j)
	}
	awaitGo(j)
	pid := spawn(j)
	if pid < 0 {
		quit(j, stageSetup, setupFork, pid)
	}
	if m.report.stage != stageNone {
		call(unix.SYS_EXIT_GROUP, 125, 0, 0, 0, 0, 0)
	}
	for sig := uintptr(1); m.early != 0; sig++ {
		if m.early&1 != 0 {
			call(unix.SYS_KILL, uintptr(pid), sig, 0, 0, 0, 0)
		}
		m.early >>= 1
	}
	m.command, m.conn = int32(pid), j.conn
	tell(m, msgStarted, uint32(pid))
	settle(j, m)
	setPhase(m, PhaseRunning)
	for {
		m.wait()
		m.hear()
		m.listenSignals()
		m.reap()
	}
}

// wait sleeps until there is something to do. While killing it wakes up by
// itself, to strike again. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) wait() {
	m.polls[0] = pollFd{fd: m.signals, events: unix.POLLIN}
	m.polls[1] = pollFd{fd: m.conn, events: unix.POLLIN}
	ts := uintptr(0)
	rest := m.graceLeft()
	switch {
	case m.killing:
		m.ts[0], m.ts[1] = 0, m.strikeAgain()
		ts = uintptr(unsafe.Pointer(&m.ts))
	case rest > 0:
		m.ts[0], m.ts[1] = 0, rest
		ts = uintptr(unsafe.Pointer(&m.ts))
	}
	call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&m.polls)), 2, ts, 0, 0, 0)
}

// graceLeft is for how many nanoseconds more what the command left behind is let
// alone; the killing begins when that is over. It is 0 where nobody waits for
// that. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) graceLeft() int64 {
	if m.left == 0 || m.keep || m.killing {
		return 0
	}
	rest := m.left + grace - m.now()
	if rest <= 0 {
		m.beginKilling()
	}
	return max(rest, 0)
}

// now is the time by CLOCK_MONOTONIC, in nanoseconds. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) now() int64 {
	call(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&m.ts)), 0, 0, 0, 0)
	return m.ts[0]*1e9 + m.ts[1]
}

// hear takes one message of the caller, or notices that it is gone. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) hear() {
	if m.conn < 0 || m.polls[1].revents == 0 {
		return
	}
	r := call(unix.SYS_RECVFROM, uintptr(m.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg), unix.MSG_DONTWAIT, 0, 0)
	switch {
	case r == -int(unix.EAGAIN) || r == -int(unix.EINTR):
	case r <= 0:
		call(unix.SYS_CLOSE, uintptr(m.conn), 0, 0, 0, 0, 0)
		m.conn = -1
		if !m.keep {
			m.beginKilling()
		}
	case m.msg.kind == msgSignal:
		// The command is this process's own child and not yet reaped: the
		// pid is its, whatever happens.
		if m.command != 0 {
			call(unix.SYS_KILL, uintptr(m.command), uintptr(m.msg.arg), 0, 0, 0, 0)
		}
	case m.msg.kind == msgKill:
		m.beginKilling()
	case m.msg.kind == msgDetach:
		m.keep = true
		if m.left != 0 && !m.killing {
			setPhase(m, PhaseKept)
		}
	case m.msg.kind == msgMemory, m.msg.kind == msgSocket:
		m.lookInto()
	}
}

// listenSignals empties the signalfd. Only ReapSignal means anything; the
// children are looked at after every wake-up. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) listenSignals() {
	for call(unix.SYS_READ, uintptr(m.signals), uintptr(unsafe.Pointer(&m.info)), unsafe.Sizeof(m.info), 0, 0, 0) == int(unsafe.Sizeof(m.info)) {
		if *(*uint32)(unsafe.Pointer(&m.info)) == uint32(ReapSignal) {
			m.beginKilling()
		}
	}
}

// reap collects what ended. With ECHILD the session is empty, which is the
// proof: this process is the subreaper of all of it. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) reap() {
	var status uint32
	for {
		const all = unix.WNOHANG | unix.WUNTRACED | unix.WCONTINUED | unix.WALL
		pid := call(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), all, 0, 0, 0)
		switch {
		case pid == -int(unix.ECHILD):
			m.finish()
		case pid == -int(unix.EINTR):
		case pid <= 0:
			return
		default:
			m.reaped(int32(pid), status)
		}
	}
}

// reaped handles one status of one child. The encoding is wait4(2)'s: 0x7f
// stopped, 0xffff continued, else ended. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) reaped(pid int32, status uint32) {
	stopped, continued := status&0xff == 0x7f, status == 0xffff
	switch {
	case pid == m.command && stopped:
		tell(m, msgStopped, status>>8&0xff)
	case pid == m.command && continued:
		tell(m, msgContinued, 0)
	case stopped || continued:
	case pid == m.command:
		m.command = 0
		m.state.WaitStatus = status
		if m.killing {
			m.state.Killed++
		}
		tell(m, msgExited, status)
		m.left = m.now()
		if m.keep && !m.killing {
			setPhase(m, PhaseKept)
		}
	case m.killing:
		m.state.Killed++
	}
}

// tell sends a message to the caller. A caller that does not read can't block
// the keeper. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func tell(m *keeperMem, kind, arg uint32) {
	if m.conn < 0 {
		return
	}
	m.msg.kind, m.msg.arg = kind, arg
	call(unix.SYS_SENDTO, uintptr(m.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
}

// Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func setPhase(m *keeperMem, p Phase) {
	m.state.Magic, m.state.Phase, m.state.CommandPid = KeeperMagic, p, m.command
	if m.hasState {
		call(unix.SYS_PWRITE64, keeperState, uintptr(unsafe.Pointer(&m.state)), unsafe.Sizeof(m.state), 0, 0, 0)
	}
}
