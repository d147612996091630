package fork

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prove makes sure that kill(-1) reaches the session and nothing else, where it is to be
// used: else that would reach all that the user runs. The init of a PID namespace reaches
// only that. In a Landlock domain a signal to the caller, which is outside and has the same
// credentials, is refused.
//
// It is signal 0, which delivers nothing, by rt_sigqueueinfo(2): in a session inside of
// another, kill(2) with signal 0 is answered by that one's supervisor, for the sake of lock
// files, whatever the domain says.
//
//go:norace
func (j *image) prove() bool {
	m, r := j.mem, 0
	switch {
	case m.inner:
		m.domain = call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0) == 1
	case j.domain:
		r = call(unix.SYS_RT_SIGQUEUEINFO, j.self, 0, uintptr(unsafe.Pointer(&queueInfo)), 0, 0, 0)
		m.domain = r == -int(unix.EPERM) && call(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0) == int(j.self)
	default:
		return true
	}
	return m.domain || j.fail(stageDomain, 0, r)
}

// queueInfo is a siginfo_t with SI_QUEUE (-1), as sigaction(2) has it: of any other
// sender the kernel says EPERM for that alone.
var queueInfo = [32]int32{2: -1}

// awaitGo waits until the caller is ready, and reports whether it is; else it is gone, and
// wants no command. Signals that come meanwhile are kept for the command, those from the
// keyboard among them: the terminal sends them to this process, where they are blocked.
//
//go:norace
func (m *keeperMem) awaitGo() bool {
	for {
		r := m.receive(0)
		switch {
		case r == -int(unix.EINTR):
		case r <= 0:
			return false
		case m.msg.kind == msgSignal:
			m.early |= 1 << (m.msg.arg - 1)
		case m.msg.kind == msgGo:
			call(unix.SYS_RT_SIGPENDING, uintptr(unsafe.Pointer(&m.mask)), 8, 0, 0, 0, 0)
			m.early |= m.mask & (1<<(unix.SIGINT-1) | 1<<(unix.SIGQUIT-1))
			return true
		}
	}
}

// spawn starts the command and returns its pid. The command borrows the
// keeper's memory until it executes; the keeper sleeps until then (vfork(2)). A copy
// would be 4 % of a start.
//
//go:norace
func spawn(j *image) int {
	const flags = unix.CLONE_VFORK | unix.CLONE_VM | unix.CLONE_SETTLS | uintptr(syscall.SIGCHLD)
	j.mem.keeper = call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	return rawClone(flags, j.mem.commandStack.top(), j.run, j, roleCommand)
}

// begin is the keeper's first act once the command runs. It leaves the terminal's session,
// and drops every descriptor that it does not need. Where no domain keeps the command from
// tracing it, it can't be dumped.
//
//go:norace
func (m *keeperMem) begin(j *image, pid int) {
	for sig := uintptr(1); m.early != 0; sig++ {
		if m.early&1 != 0 {
			call(unix.SYS_KILL, uintptr(pid), sig, 0, 0, 0, 0)
		}
		m.early >>= 1
	}
	m.command = int32(pid)
	if m.limit > 0 {
		m.deadline = m.now() + m.limit
	}
	told := m.tell(msgStarted, uint32(pid))
	call(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	if !j.domain { // which hides it in a /proc that is mounted with hidepid, too
		call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
	}
	call(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&keeperName)), 0, 0, 0, 0)
	call(unix.SYS_CHDIR, uintptr(unsafe.Pointer(&rootDir)), 0, 0, 0, 0, 0)
	m.closeOthers(j.nofile)
	m.endInTime()
	m.setPhase(PhaseRunning)
	if !told { // the caller would wait for ever, and answer nothing that the command asks
		m.beginKilling()
	}
}

// endInTime has the keeper end its session when it has used up half of the time
// that it may take of a processor (RLIMIT_CPU, ulimit -t): what the command leaves behind
// for it to collect costs some, and at the limit the kernel kills it.
//
//go:norace
func (m *keeperMem) endInTime() {
	const itimerProf = 2
	if call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CPU, 0, uintptr(unsafe.Pointer(&m.ts)), 0, 0) < 0 || uint64(m.ts[1]) > 1<<32 {
		return
	}
	after := m.ts[1] * 1e6 / 2
	timer := [4]int64{2: after / 1e6, 3: after % 1e6}
	call(unix.SYS_SETITIMER, itimerProf, uintptr(unsafe.Pointer(&timer)), 0, 0, 0, 0)
}

var (
	keeperName = [...]byte{'z', 's', 'b', 'x', '-', 'k', 'e', 'e', 'p', 'e', 'r', 0}
	rootDir    = [...]byte{'/', 0}
)

// closeOthers closes every descriptor that is none of the keeper's. Those stay
// where they are: moving one can fail, and the command runs by now.
//
//go:norace
func (m *keeperMem) closeOthers(nofile uintptr) {
	const end = 1 << 32
	for from := uintptr(0); from < end; {
		own := uintptr(end) // the next of the keeper's
		for _, fd := range [...]int32{m.conn, int32(m.signals), m.held, m.stateFile, m.cgroupKill} {
			if fd >= 0 && uintptr(fd) >= from {
				own = min(own, uintptr(fd))
			}
		}
		if from < own {
			closeRange(from, own-1, 0, nofile)
		}
		from = own + 1
	}
}
