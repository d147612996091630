package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// collectFirst is how long a strike that is due waits for children that ended to be
// collected, in nanoseconds.
const collectFirst = 200e6

// strikeAgain strikes when that is due, and gives the nanoseconds until it is due
// the next time: 1 to 64 ms, in a domain 16 at least. The strike there asks about
// every process of the machine, meets all of the session at once, and none of that can fork any
// more: it is not repeated for each child that ended meanwhile. Without a domain
// each end may have given this process new children, but those that are there to be
// collected come first. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) strikeAgain() int64 {
	now := m.now()
	onlyTried := m.strikes == 1 && m.state.Killed > 0 // the children ended, and left others
	if m.more && now < m.again+collectFirst || m.domain && now < m.again && !onlyTried {
		return max(m.again-now, 1)
	}
	m.strike()
	rest := int64(1e6) << min(m.strikes, 6)
	if m.domain {
		rest = max(rest, 16e6)
	}
	m.strikes++
	m.again = m.now() + rest
	return rest
}

// strike sends SIGKILL by every means that the session has. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) strike() {
	if m.cgroupKill >= 0 {
		m.text[0] = '1'
		call(unix.SYS_PWRITE64, uintptr(m.cgroupKill), uintptr(unsafe.Pointer(&m.text)), 1, 0, 0, 0)
		m.state.Method |= MethodCgroup
	}
	// In a domain the children are only the first try, which is often enough,
	// and costs the same however many processes the machine has.
	if m.domain && (m.strikes > 0 || !m.killChildren()) {
		// Everything in this process's Landlock domain and in those nested
		// in it, and nothing else: proved by proveDomain, and a domain
		// can't be left. Atomic against fork: kill(2) holds the lock that a
		// new process needs to become visible.
		call(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0, 0, 0, 0)
		m.state.Method |= MethodDomain
		return
	}
	m.state.Method |= MethodSubtree
	if m.domain {
		return
	}
	m.killChildren()
	if m.elapsed() > patience {
		sweepAll(m)
	}
}

// killChildren kills the direct children, if the kernel tells of them. Their children become this
// process's own and are met at the next strike. A child's pid can't be reused
// before this process has waited for it. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) killChildren() bool {
	fd := call(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&childrenFile)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if fd < 0 {
		return false
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
	return true
}

var childrenFile = [...]byte{'/', 'p', 'r', 'o', 'c', '/', 't', 'h', 'r', 'e', 'a', 'd', '-', 's', 'e', 'l', 'f', '/', 'c', 'h', 'i', 'l', 'd', 'r', 'e', 'n', 0}

// Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) finish() {
	setPhase(m, PhaseEmpty)
	tell(m, Emptied, m.state.Killed)
	exit(0)
}
