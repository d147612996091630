package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The keeper's life. It begins with keeper_begin_linux.go: signals blocked, its domain
// proved, the command started, all memory and descriptors dropped that it does not
// need. This file is its loop: it waits for the caller, signals, children and the
// clock. keeper_end_linux.go kills what is left, sweep_linux.go where that forks
// faster. It ends when wait4(2) says ECHILD, and writes that into the state.

// grace is how long what the command leaves behind may go on after it without
// Keep, in nanoseconds: long enough for the cat of sh -c 'echo > >(cat)' to
// write what it was given, too short to be noticed.
const grace = 300e6

// runKeeper starts the command and stays until the session is empty. It never
// returns. Raw.
//
//go:nosplit
//go:norace
func runKeeper(j *image) {
	m := j.mem
	if !j.prepareKeeper() {
		m.quit(j.peer)
	}
	awaitGo(j)
	pid := spawn(j)
	if pid < 0 {
		j.fail(stageSetup, setupFork, pid)
	}
	if m.report.stage != stageNone {
		m.quit(j.peer)
	}
	m.begin(j, pid)
	for {
		m.wait()
		m.hear()
		m.listenSignals()
		m.reap()
	}
}

// quit ends a keeper that has started nothing, and says so. A caller that lives may try
// again with another; where it is gone, nothing is left. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) quit(peer int32) {
	call(unix.SYS_CLOSE, uintptr(peer), 0, 0, 0, 0, 0) // or the caller's end would never be closed
	r := 1
	for r > 0 {
		r = call(unix.SYS_RECVFROM, uintptr(m.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg), unix.MSG_DONTWAIT, 0, 0)
	}
	if r == 0 {
		setPhase(m, PhaseEmpty)
	} else {
		setPhase(m, PhaseFailed)
	}
	exit(125)
}

// wait sleeps until there is something to do. While killing it wakes up by
// itself, to strike again. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) wait() {
	m.polls[0] = pollFd{fd: m.signals, events: unix.POLLIN}
	m.polls[1] = pollFd{fd: m.conn, events: unix.POLLIN}
	ts, rest := uintptr(0), m.timeLeft()
	if m.killing {
		rest = m.strikeAgain()
	}
	if m.uneasy && (rest == 0 || rest > 10e6) {
		m.uneasy, rest = false, 10e6
	}
	if m.more {
		m.more, rest = false, 1
	}
	if rest > 0 {
		m.ts[0], m.ts[1] = rest/1e9, rest%1e9
		ts = uintptr(unsafe.Pointer(&m.ts))
	}
	call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&m.polls)), 2, ts, 0, 0, 0)
}

// timeLeft is for how many nanoseconds nothing is due, after it did what was; 0
// is for ever. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) timeLeft() int64 {
	if m.left != 0 || m.deadline == 0 || m.killing {
		return m.graceLeft()
	}
	rest := m.deadline - m.now()
	if rest > 0 {
		return rest
	}
	if m.state.TimedOut != 0 {
		m.beginKilling()
		return 0
	}
	m.deadline = 0
	if m.killAfter > 0 {
		m.deadline = m.now() + m.killAfter
	}
	m.state.TimedOut = 1
	m.signal(uint32(unix.SIGTERM))
	setPhase(m, m.state.Phase)
	tell(m, TimedOut, 0)
	return m.killAfter
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
func (m *keeperMem) now() int64 {
	call(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&m.ts)), 0, 0, 0, 0)
	return m.ts[0]*1e9 + m.ts[1]
}

// hear takes one message of the caller, or notices that it is gone. Raw.
//
//go:nosplit
//go:norace
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
		m.signal(m.msg.arg)
	case m.msg.kind == msgKill:
		m.beginKilling()
	}
}

// signal passes a signal on to the command. One that is to end it finds it stopped,
// perhaps, and wakes it, as the kernel does when a terminal closes. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) signal(sig uint32) {
	const ending = 1<<unix.SIGHUP | 1<<unix.SIGINT | 1<<unix.SIGQUIT | 1<<unix.SIGTERM
	if m.command == 0 {
		return
	}
	// It is this process's own child and not yet reaped: the pid is its, whatever
	// happens.
	call(unix.SYS_KILL, uintptr(m.command), uintptr(sig), 0, 0, 0, 0)
	if 1<<(sig&31)&ending != 0 {
		call(unix.SYS_KILL, uintptr(m.command), uintptr(unix.SIGCONT), 0, 0, 0, 0)
	}
}

// listenSignals empties the signalfd. Only ReapSignal means anything, and what endInTime
// asked for; the children are looked at after every wake-up. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) listenSignals() {
	for call(unix.SYS_READ, uintptr(m.signals), uintptr(unsafe.Pointer(&m.info)), unsafe.Sizeof(m.info), 0, 0, 0) == int(unsafe.Sizeof(m.info)) {
		if sig := *(*uint32)(unsafe.Pointer(&m.info)); sig == uint32(ReapSignal) || sig == uint32(unix.SIGPROF) {
			m.beginKilling()
		}
	}
}

// reapsAtOnce is how many children are collected before the clock and the caller
// are looked at again: a command can end children faster than they are collected,
// each of which takes as long as there are others.
const reapsAtOnce = 16

// reap collects what ended. With ECHILD the session is empty, which is the
// proof: this process is the subreaper of all of it. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) reap() {
	var status uint32
	for range reapsAtOnce {
		const all = unix.WNOHANG | unix.WUNTRACED | unix.WALL
		pid := call(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), all, 0, 0, 0)
		switch {
		case pid == -int(unix.ECHILD):
			m.finish()
		case pid == -int(unix.EINTR):
		case pid <= 0:
			m.uneasy = pid < 0
			return
		default:
			m.reaped(int32(pid), status)
		}
	}
	m.more = true
}

// reaped handles one status of one child. The encoding is wait4(2)'s: 0x7f
// stopped, else ended. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) reaped(pid int32, status uint32) {
	stopped := status&0xff == 0x7f
	switch {
	case pid == m.command && stopped:
		tell(m, Stopped, status>>8&0xff)
	case stopped:
	case pid == m.command:
		m.command = 0
		m.state.WaitStatus = status
		if m.killing {
			m.state.Killed++
			status |= killedToo
		}
		if !tell(m, Exited, status) && m.keep {
			m.beginKilling() // or the caller would wait for what goes on
		}
		m.left = m.now()
		switch {
		case m.killing:
		case m.keep:
			setPhase(m, PhaseKept)
		case m.state.TimedOut != 0:
			m.beginKilling() // what is left has had its time
		}
	case m.killing:
		m.state.Killed++
	}
}

// tell sends a message to the caller, again for a tenth of a second where the
// kernel has no memory for it; it reports whether it had in the end. A caller that
// does not read can't block the keeper; what it has missed at the end stands in
// the state file. Raw.
//
//go:nosplit
//go:norace
func tell(m *keeperMem, kind EventKind, arg uint32) bool {
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

// Raw.
//
//go:nosplit
//go:norace
func setPhase(m *keeperMem, p Phase) {
	m.state.Magic, m.state.Phase, m.state.CommandPid = KeeperMagic, p, m.command
	if m.inner {
		m.state.CommandPid = 0
	}
	if m.stateFile >= 0 {
		call(unix.SYS_PWRITE64, uintptr(m.stateFile), uintptr(unsafe.Pointer(&m.state)), unsafe.Sizeof(m.state), 0, 0, 0)
	}
}
