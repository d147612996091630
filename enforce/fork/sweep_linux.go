package fork

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience is how long a keeper without a domain kills only its own children,
// in nanoseconds, before it sweeps.
const patience = 20e6

// sweepAll is sweep, called by its address: the linker allows raw functions 800
// bytes of stack and counts anew from there. stackSize has room for ten
// times as much.
var sweepAll = (*keeperMem).sweep

// sweep ends a session that forks faster than its parts are killed: a fork bomb
// at its limit fills each place that a death makes. So everything below the
// keeper is stopped first, look by look, until nothing runs any more that could
// make more; then all of it is killed. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) sweep() {
	for clean, look := 0, 0; clean < 2 && look < 100; look++ {
		if m.signalAll(unix.SIGSTOP) > 0 {
			clean = 0
		} else {
			clean++
		}
	}
	m.signalAll(unix.SIGKILL)
}

// elapsed is the time since the killing began, in nanoseconds. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) elapsed() int64 {
	now := m.now()
	if m.began == 0 {
		m.began = now
	}
	return now - m.began
}

// signalAll sends sig to everything below the keeper that has not ended, nor is
// stopped already if sig is SIGSTOP, and counts. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) signalAll(sig syscall.Signal) int {
	proc := m.openProc()
	if proc < 0 {
		return 0
	}
	self := call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	count := 0
	for at := m.nextPid(proc, -1); at >= 0; at = m.nextPid(proc, at) {
		if pid := m.pid; pid != self && m.below(proc, self, pid, sig) && m.signalPinned(proc, self, pid, sig) {
			count++
		}
	}
	call(unix.SYS_CLOSE, uintptr(proc), 0, 0, 0, 0, 0)
	return count
}

// signalPinned signals a process through a descriptor (pidfd_open(2), Linux
// 5.3), and only if it is below the keeper after that was opened: the number may
// have become another process's meanwhile. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) signalPinned(proc, self, pid int, sig syscall.Signal) bool {
	fd := call(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0, 0, 0, 0)
	if fd < 0 {
		return false
	}
	sent := m.below(proc, self, pid, sig) &&
		call(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(fd), uintptr(sig), 0, 0, 0, 0) == 0
	call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	return sent
}

// below reports whether pid descends from self and sig would change something.
// Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) below(proc, self, pid int, sig syscall.Signal) bool {
	for hops := 0; pid > 1 && hops < 1<<16; hops++ {
		at := m.readStat(proc, pid)
		if at == 0 {
			return false
		}
		if c := m.stat[at]; hops == 0 && (c == 'X' || c == 'Z' && m.threads(at) <= 1 || sig == unix.SIGSTOP && (c == 'T' || c == 't')) {
			return false
		}
		pid = m.number(at + 2)
		if pid == self {
			return true
		}
	}
	return false
}

// openProc opens the directory of all processes. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) openProc() int {
	m.entries = 0
	return call(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&procDir)), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0, 0, 0)
}

// nextPid goes on from one entry of the directory of processes (-1 before the
// first) to the next that is a process, other than init, and puts its number
// into m.pid. It gives -1 at the end. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) nextPid(proc, at int) int {
	for {
		// struct linux_dirent64: the record's length is at 16, the name at 19.
		if at >= 0 && at+19 < len(m.text) {
			at += int(m.text[at+16]) | int(m.text[at+17])<<8
		}
		if at < 0 || at+19 >= m.entries || at+19 >= len(m.text) {
			m.entries = call(unix.SYS_GETDENTS64, uintptr(proc), uintptr(unsafe.Pointer(&m.text)), unsafe.Sizeof(m.text), 0, 0, 0)
			if m.entries <= 0 {
				return -1
			}
			at = 0
		}
		m.pid = 0
		for i := at + 19; i < len(m.text) && m.text[i] >= '0' && m.text[i] <= '9'; i++ {
			m.pid = m.pid*10 + int(m.text[i]-'0')
		}
		if m.pid > 1 {
			return at
		}
	}
}

// readStat reads the stat file of a process (proc_pid_stat(5)) into m.stat and
// gives the place of the state, which is field 3, after the name in
// parentheses; 0 if the process is gone. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) readStat(proc, pid int) int {
	i := len(m.path)
	for _, c := range [...]byte{0, 't', 'a', 't', 's', '/'} {
		i--
		m.path[i] = c
	}
	for ; pid > 0 && i > 0; pid /= 10 {
		i--
		m.path[i] = byte('0' + pid%10)
	}
	fd := call(unix.SYS_OPENAT, uintptr(proc), uintptr(unsafe.Pointer(&m.path[i])), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if fd < 0 {
		return 0
	}
	n := call(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&m.stat)), unsafe.Sizeof(m.stat), 0, 0, 0)
	call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	at := 0
	for k := 0; k < n && k < len(m.stat); k++ {
		if m.stat[k] == ')' {
			at = k + 2
		}
	}
	if n <= 0 || at+2 >= n || at+2 >= len(m.stat) {
		return 0
	}
	return at
}

// threads is field 20 of a stat file whose field 3 is at. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) threads(at int) int {
	for field := 3; field < 20 && at < len(m.stat); at++ {
		if m.stat[at] == ' ' {
			field++
		}
	}
	return m.number(at)
}

// number reads the digits in m.stat. Raw.
//
//go:nosplit
//go:norace
func (m *keeperMem) number(at int) int {
	n := 0
	for ; at < len(m.stat) && m.stat[at] >= '0' && m.stat[at] <= '9'; at++ {
		n = n*10 + int(m.stat[at]-'0')
	}
	return n
}

var procDir = [...]byte{'/', 'p', 'r', 'o', 'c', 0}
