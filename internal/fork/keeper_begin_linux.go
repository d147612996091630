package fork

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prove checks that kill(-1), if it will be used, reaches only the session and not all that the
// user runs. The init of a PID namespace reaches only that namespace. In a Landlock domain a
// signal to the caller must be refused, since the caller is outside and has the same
// credentials.
//
// It sends signal 0, which delivers nothing, by rt_sigqueueinfo(2). It can't use kill(2),
// because in a nested session the outer broker answers kill(2) with signal 0, for the sake of
// lock files, whatever the domain says.
//
//go:norace
func (j *image) prove() bool {
	m := j.mem
	r := 0
	switch {
	case m.inner:
		m.domain = call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0) == 1
	case j.domain:
		r = call(unix.SYS_RT_SIGQUEUEINFO, j.caller, 0, uintptr(unsafe.Pointer(&queueInfo)), 0, 0, 0)
		m.domain = r == -int(unix.EPERM) && call(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0) == int(j.caller)
	default:
		return true
	}
	return m.domain || j.fail(stageDomain, 0, r)
}

// queueInfo is a siginfo_t with SI_QUEUE (-1) (sigaction(2)). With another code the kernel
// would return EPERM for that reason alone.
var queueInfo = [32]int32{2: -1}

// awaitGo waits until the caller is ready. It returns false if the caller is gone. Then no
// command is started. It keeps signals that come meanwhile for the command, including those
// from the keyboard, which the terminal sends to this process, where they are blocked.
//
//go:norace
func (m *keeperMem) awaitGo() bool {
	for {
		r := m.receive(0)
		if r == -int(unix.EINTR) {
			continue
		}
		if r <= 0 {
			return false
		}
		switch m.msg.kind {
		case msgSignal:
			m.early |= 1 << (m.msg.arg - 1)
		case msgGo:
			call(unix.SYS_RT_SIGPENDING, uintptr(unsafe.Pointer(&m.mask)), 8, 0, 0, 0, 0)
			m.early |= m.mask & (1<<(unix.SIGINT-1) | 1<<(unix.SIGQUIT-1))
			return true
		}
	}
}

// spawn starts the command and returns its pid. The command uses the keeper's memory until
// execve(2), and the keeper sleeps until then (vfork(2)). A copy would take 4 % of a start.
//
//go:norace
func spawn(j *image) int {
	const flags = unix.CLONE_VFORK | unix.CLONE_VM | unix.CLONE_SETTLS | uintptr(syscall.SIGCHLD)
	j.mem.keeper = call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	return rawClone(flags, j.mem.commandStack.top(), j.run, j, roleCommand)
}

// begin is what the keeper does first once the command runs. It leaves the terminal's session and
// closes every descriptor that it does not need. Without a domain it makes itself not dumpable,
// so that the command can't trace it.
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
	if !j.domain { // with hidepid that also hides it in /proc
		call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
	}
	call(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&keeperName)), 0, 0, 0, 0)
	call(unix.SYS_CHDIR, uintptr(unsafe.Pointer(&rootDir)), 0, 0, 0, 0, 0)
	m.closeOthers(j.nofile)
	m.endInTime()
	m.setPhase(PhaseRunning)
	if !told { // the caller would wait for ever, and its broker would answer no calls
		m.beginKilling()
	}
}

// endInTime makes the keeper end its session when it has used half of its processor time
// (RLIMIT_CPU, ulimit -t). Reaping what the command leaves behind takes time, and at the limit
// the kernel kills the keeper.
//
//go:norace
func (m *keeperMem) endInTime() {
	const itimerProf = 2
	r := call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CPU, 0, uintptr(unsafe.Pointer(&m.ts)), 0, 0)
	unlimited := uint64(m.ts[1]) > 1<<32
	if r < 0 || unlimited {
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

// closeOthers closes all descriptors that the keeper does not need. The others keep their
// numbers, since moving one can fail and the command already runs.
//
//go:norace
func (m *keeperMem) closeOthers(nofile uintptr) {
	const end = 1 << 32
	for from := uintptr(0); from < end; {
		next := uintptr(end) // the next one that stays open
		for _, fd := range [...]int32{
			m.conn, int32(m.signals), m.held, m.stateFile, m.cgroupKill, m.terminal, m.sockets.conn,
		} {
			if fd >= 0 && uintptr(fd) >= from {
				next = min(next, uintptr(fd))
			}
		}
		if from < next {
			closeRange(from, next-1, 0, nofile)
		}
		from = next + 1
	}
}
