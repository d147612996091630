package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The descriptors of a running keeper, beside that by which it hears signals.
const (
	keeperConn   = 0 // to the caller; -1 in keeperMem.conn once the caller is gone
	keeperState  = 1 // Keeper.State, or a second connection where there is none
	keeperCgroup = 2 // Keeper.CgroupKill, or a second connection where there is none
	keeperHeld   = 3 // that of the step with Hold, if there is one
)

// keeperMem is the memory that the new processes write to: shared by all of
// them and the caller, until the caller lets go of it, and outside of the Go
// heap, so that the keeper can give its copy of that back.
type keeperMem struct {
	size    uintptr
	report  stepReport
	conn    int32
	signals int32
	command int32 // the command's pid; 0 once it was reaped
	left    int64 // when the command ended, by CLOCK_MONOTONIC in nanoseconds
	held    int32 // the descriptor that a step with Hold gave; 0 for none

	domain, hasState, hasCgroup, keep, killing bool

	strikes uint
	began   int64  // when the killing did, by CLOCK_MONOTONIC
	early   uint32 // a signal for the command that came before it was there

	state KeeperState
	msg   message
	fetch fetchMem
	mask  uint64
	ts    [2]int64
	polls [2]pollFd
	info  [128]byte // signalfd_siginfo
	text  [4096]byte
	path  [32]byte
	stat  [512]byte

	entries, pid int // of /proc: bytes in text, and the process that is looked at

	remove [RemoveSize + 1]byte // Keeper.Remove, each path ended by a NUL, and one more
}

type pollFd struct {
	fd              int32
	events, revents int16
}

// grace is how long what the command leaves behind may go on after it without
// Keep, in nanoseconds: long enough for the cat of sh -c 'echo > >(cat)' to
// write what it was given, too short to be noticed.
const grace = 100e6

// message travels between caller and keeper, one packet each. Those that
// Fetcher sends say more.
type message struct {
	kind, arg uint32
	n, flags  uint32
	at        uint64
}

const (
	msgStarted   = iota + 1 // arg: the command's pid
	msgStopped              // arg: the signal
	msgContinued            //
	msgExited               // arg: the wait status
	msgEmpty                // arg: processes reaped after the killing began
	msgSignal               // to the keeper: arg is the signal for the command
	msgKill                 // to the keeper
	msgDetach               // to the keeper
	msgGo                   // to the keeper: the caller is ready for the command to start
	msgMemory               // to the keeper: arg is a thread, n how much of its memory, at where
	msgSocket               // to the keeper: arg is a process, flags those of pidfd_open(2), n its descriptor
	msgFetched              // arg: the bytes of memory that follow, or the negative errno
)

// runKeeper starts the command and stays until the session is empty. It never
// returns. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runKeeper(j *image) {
	m := j.mem
	m.mask = ^uint64(0)
	call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&m.mask)), 0, 8, 0, 0)
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
	if m.early != 0 {
		call(unix.SYS_KILL, uintptr(pid), uintptr(m.early), 0, 0, 0, 0)
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

// awaitGo waits until the caller is ready. A caller that is gone instead wants
// no command. A signal that comes meanwhile is kept for the command. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func awaitGo(j *image) {
	m := j.mem
	call(unix.SYS_CLOSE, uintptr(j.peer), 0, 0, 0, 0, 0) // or the caller's end would never be closed
	for {
		r := call(unix.SYS_RECVFROM, uintptr(j.conn), uintptr(unsafe.Pointer(&m.msg)), unsafe.Sizeof(m.msg), 0, 0, 0)
		if r > 0 && m.msg.kind == msgGo {
			return
		}
		if r > 0 && m.msg.kind == msgSignal {
			m.early = m.msg.arg
		}
		if r <= 0 && r != -int(unix.EINTR) {
			call(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
		}
	}
}

// spawn starts the command and returns its pid. The command borrows the
// keeper's memory until it executes, unless one of its steps needs memory of
// its own. It is a function of its own because nothing of its frame may be
// used after the child ran on it. Raw.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func spawn(j *image) int {
	flags := uintptr(vforkFlags)
	if j.ownMemory {
		flags &^= unix.CLONE_VM
	}
	pid := rawVfork(flags)
	if pid == 0 {
		runCommand(j)
	}
	return pid
}

// proveDomain asks the kernel whether a signal to a process that is outside of
// the domain and has the same credentials (the caller, or its canary) is
// refused. Only then may the keeper ever call kill(-1): without the domain that
// call would reach all that the user runs. Raw.
//
//go:nosplit
//go:norace
func proveDomain(j *image) {
	r := call(unix.SYS_KILL, j.outsider, 0, 0, 0, 0, 0)
	if r != -int(unix.EPERM) || call(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0) != int(j.self) {
		quit(j, stageDomain, uint32(-r), r)
	}
	j.mem.domain = true
}

// settle leaves the terminal's session, drops every descriptor and all memory
// that the keeper does not need. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func settle(j *image, m *keeperMem) {
	m.keep, m.hasState, m.hasCgroup = j.keep, j.state >= 0, j.cgroupKill >= 0
	call(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
	call(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&keeperName)), 0, 0, 0, 0)
	if j.root < 0 || call(unix.SYS_FCHDIR, uintptr(j.root), 0, 0, 0, 0, 0) < 0 {
		call(unix.SYS_CHDIR, uintptr(unsafe.Pointer(&rootDir)), 0, 0, 0, 0, 0)
	}
	call(unix.SYS_DUP3, uintptr(j.conn), keeperConn, 0, 0, 0, 0)
	call(unix.SYS_DUP3, uintptr(either(j.state, j.conn)), keeperState, 0, 0, 0, 0)
	call(unix.SYS_DUP3, uintptr(either(j.cgroupKill, j.conn)), keeperCgroup, 0, 0, 0, 0)
	rest := uintptr(keeperHeld)
	if m.held > 0 {
		call(unix.SYS_DUP3, uintptr(m.held), keeperHeld, 0, 0, 0, 0)
		rest++
	}
	if call(unix.SYS_CLOSE_RANGE, rest, ^uintptr(0)>>32, 0, 0, 0, 0) < 0 {
		for fd := rest; fd < j.nofile; fd++ {
			call(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		}
	}
	if !m.hasState {
		call(unix.SYS_CLOSE, keeperState, 0, 0, 0, 0, 0)
	}
	if !m.hasCgroup {
		call(unix.SYS_CLOSE, keeperCgroup, 0, 0, 0, 0, 0)
	}
	m.conn = keeperConn
	m.signals = int32(call(unix.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&m.mask)), 8, unix.SFD_NONBLOCK|unix.SFD_CLOEXEC, 0, 0))
	if !j.lean {
		trim(j)
	}
}

var (
	keeperName = [...]byte{'z', 's', 'b', 'x', '-', 'k', 'e', 'e', 'p', 'e', 'r', 0}
	rootDir    = [...]byte{'/', 0}
)

//go:nosplit
func either(fd, other int32) int32 {
	if fd >= 0 {
		return fd
	}
	return other
}

// trim gives the copy of the caller's heap back, but for the part around the
// stack that this function runs on: a keeper may live for days. The heap is
// what lies within a GiB of that stack (a hole in it makes madvise(2) say
// ENOMEM, after it dropped the rest). Nothing that raw code still reads is
// there: from here on only keeperMem, mapped elsewhere, and constants. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func trim(j *image) {
	const reach, around = 1 << 30, 64 << 10
	var here byte
	sp := uintptr(unsafe.Pointer(&here)) &^ 4095
	mem := uintptr(unsafe.Pointer(j.mem))
	if sp < reach || mem > sp-reach && mem < sp+reach {
		return
	}
	call(unix.SYS_MADVISE, sp-reach, reach-around, unix.MADV_DONTNEED, 0, 0, 0)
	call(unix.SYS_MADVISE, sp+around, reach-around, unix.MADV_DONTNEED, 0, 0, 0)
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
		m.strike()
		m.ts[0], m.ts[1] = 0, 1e6<<min(m.strikes, 6) // 1 to 64 ms
		m.strikes++
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

// Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) beginKilling() {
	if !m.killing {
		m.killing = true
		setPhase(m, PhaseKilling)
	}
}

// Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) finish() {
	setPhase(m, PhaseEmpty)
	tell(m, msgEmpty, m.state.Killed)
	if m.conn < 0 {
		m.removePaths()
	}
	for {
		call(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// removePaths does what Keeper.Remove asks for, from the root directory that is
// this process's working directory. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) removePaths() {
	const atRemoveDir = 0x200
	start := 0
	for i := range m.remove {
		if m.remove[i] != 0 {
			continue
		}
		if i == start {
			return
		}
		flag := uintptr(0)
		if m.remove[i-1] == '/' {
			flag = atRemoveDir
		}
		call(unix.SYS_UNLINKAT, ^uintptr(99), uintptr(unsafe.Pointer(&m.remove[start+1])), flag, 0, 0, 0)
		start = i + 1
	}
}

// strike sends SIGKILL by every means that the session has. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) strike() {
	if m.hasCgroup {
		m.text[0] = '1'
		call(unix.SYS_PWRITE64, keeperCgroup, uintptr(unsafe.Pointer(&m.text)), 1, 0, 0, 0)
		m.state.Method |= MethodCgroup
	}
	if m.domain {
		// Everything in this process's Landlock domain and in those nested
		// in it, and nothing else: proved by proveDomain, and a domain
		// can't be left. Atomic against fork: kill(2) holds the lock that a
		// new process needs to become visible.
		call(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0, 0, 0, 0)
		m.state.Method |= MethodDomain
		return
	}
	m.killChildren()
	if m.elapsed() > patience {
		sweepAll(m)
	}
	m.state.Method |= MethodSubtree
}

// killChildren kills the direct children. Their children become this
// process's own and are met at the next strike. A child's pid can't be reused
// before this process has waited for it. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) killChildren() {
	fd := call(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&childrenFile)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if fd < 0 {
		return
	}
	pid, n := 0, 1
	for n > 0 {
		n = call(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&m.text)), unsafe.Sizeof(m.text), 0, 0, 0)
		for i := 0; i < n && i < len(m.text); i++ {
			if c := m.text[i]; c >= '0' && c <= '9' {
				pid = pid*10 + int(c-'0')
				continue
			}
			if pid > 1 {
				call(unix.SYS_KILL, uintptr(pid), uintptr(unix.SIGKILL), 0, 0, 0, 0)
			}
			pid = 0
		}
	}
	call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
}

var childrenFile = [...]byte{'/', 'p', 'r', 'o', 'c', '/', 't', 'h', 'r', 'e', 'a', 'd', '-', 's', 'e', 'l', 'f', '/', 'c', 'h', 'i', 'l', 'd', 'r', 'e', 'n', 0}

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
