package fork

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// beginKilling makes act kill the session from now on.
//
//go:norace
func (m *keeperMem) beginKilling() {
	if !m.killing {
		m.killing = true
		m.deadline = 0
		m.setPhase(PhaseKilling)
	}
}

// restoreTerminal gives the terminal its settings back, if they are those that the caller made.
// A caller that ended by itself has restored them, and others may have changed them since.
//
//go:norace
func (m *keeperMem) restoreTerminal() {
	if m.terminal < 0 {
		return
	}
	fd := uintptr(m.terminal)
	got := call(unix.SYS_IOCTL, fd, unix.TCGETS, uintptr(unsafe.Pointer(&m.found)), 0, 0, 0)
	if got == 0 && m.found == m.changed {
		call(unix.SYS_IOCTL, fd, unix.TCSETS, uintptr(unsafe.Pointer(&m.settings)), 0, 0, 0)
	}
	call(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	m.terminal = -1
}

// collectFirst is how long, in nanoseconds, a strike is delayed while there are ended children
// to reap.
const collectFirst = 200e6

// strikeAgain strikes when a strike is due, and returns the nanoseconds until the next one: 1
// to 64 ms, in a domain at least 16. In a domain one strike checks every process of the machine
// and hits all of the session at once, so that none of it can fork any more. So it is not
// repeated for each child that ends. Without a domain each end may give this process new
// children, but it reaps ended ones first.
//
//go:norace
func (m *keeperMem) strikeAgain(now int64) int64 {
	if m.again == thereIsMore && now < m.deadline+collectFirst || m.domain && now < m.deadline {
		return max(m.deadline-now, 1)
	}
	m.strike()
	rest := int64(1e6) << min(m.strikes, 6)
	if m.domain {
		rest = max(rest, 16e6)
	}
	m.strikes++
	m.deadline = m.now() + rest
	return rest
}

// strike sends SIGKILL by all means that the session has.
//
//go:norace
func (m *keeperMem) strike() {
	if m.cgroupKill >= 0 {
		m.text[0] = '1'
		call(unix.SYS_PWRITE64, uintptr(m.cgroupKill), uintptr(unsafe.Pointer(&m.text)), 1, 0, 0, 0)
		m.state.Method |= MethodCgroup
	}
	if m.domain {
		// This reaches all in this process's Landlock domain and those nested in it, and
		// nothing else: see prove. A domain can't be left. No fork can evade it, since kill(2)
		// has the lock that a new process needs to become visible.
		call(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0, 0, 0, 0)
		m.state.Method |= MethodDomain
		return
	}
	m.state.Method |= MethodSubtree
	m.sweep()
	m.killChildren()
}

// killChildren kills the direct children, if the kernel has the file that lists them. It finds
// children that a sweep misses: those that proc(5) hides (hidepid), or all if pidfd_open(2) is
// refused, as in some containers. A killed child's children become this process's own and are
// killed by the next strike. A child's number is not reused before this process has waited for
// it.
//
//go:norace
func (m *keeperMem) killChildren() {
	fd := openAt(atCWD, unsafe.Pointer(&childrenFile), 0)
	pid := 0
	n := 1
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

var (
	childrenFile = [...]byte{
		'/', 'p', 'r', 'o', 'c', '/', 't', 'h', 'r', 'e', 'a', 'd', '-', 's', 'e', 'l', 'f',
		'/', 'c', 'h', 'i', 'l', 'd', 'r', 'e', 'n', 0,
	}
	procDir = [...]byte{'/', 'p', 'r', 'o', 'c', 0}
)

const atCWD = -100

// openAt opens a file for reading.
//
//go:norace
func openAt(dir int, name unsafe.Pointer, flags uintptr) int {
	return call(unix.SYS_OPENAT, uintptr(dir), uintptr(name), flags|unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
}

// sweep kills everything below the keeper. Some sessions fork faster than they can be killed: a
// fork bomb at its limit replaces each process that dies. So from the second sweep on processes
// are first stopped, look by look, until none runs that could fork.
//
//go:norace
func (m *keeperMem) sweep() {
	for clean, look := 0, 0; m.strikes > 0 && clean < 2 && look < 100; look++ {
		clean++
		if m.signalAll(uintptr(unix.SIGSTOP)) > 0 {
			clean = 0
		}
	}
	m.signalAll(uintptr(unix.SIGKILL))
}

// signalAll sends sig to everything below the keeper and returns how many it signalled. It
// skips processes that have ended and, for SIGSTOP, stopped ones. It opens a pidfd
// (pidfd_open(2)) before it looks, so that it signals the very process that it looked at.
//
//go:norace
func (m *keeperMem) signalAll(sig uintptr) (count int) {
	proc := openAt(atCWD, unsafe.Pointer(&procDir), unix.O_DIRECTORY)
	for {
		n := call(unix.SYS_GETDENTS64, uintptr(proc), uintptr(unsafe.Pointer(&m.text)), unsafe.Sizeof(m.text), 0, 0, 0)
		// struct linux_dirent64: the record's length is at 16, the name at 19.
		for at := 0; at >= 0 && at < n && at+19 < len(m.text); at += int(m.text[at+16]) | int(m.text[at+17])<<8 {
			pid := number(m.text[at+19:])
			if pid <= 1 {
				continue
			}
			fd := uintptr(call(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0, 0, 0, 0))
			if m.below(proc, pid, sig) && call(unix.SYS_PIDFD_SEND_SIGNAL, fd, sig, 0, 0, 0, 0) == 0 {
				count++
			}
			call(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		}
		if n <= 0 {
			call(unix.SYS_CLOSE, uintptr(proc), 0, 0, 0, 0, 0)
			return count
		}
	}
}

// busy reports whether what the command left, a few processes, runs or has used the processor
// since the last look. What only sleeps is not about to end.
//
//go:norace
func (m *keeperMem) busy() bool {
	proc := openAt(atCWD, unsafe.Pointer(&procDir), unix.O_DIRECTORY)
	running := false
	left := 0
	used := 0
	for {
		n := call(unix.SYS_GETDENTS64, uintptr(proc), uintptr(unsafe.Pointer(&m.text)), unsafe.Sizeof(m.text), 0, 0, 0)
		if n <= 0 {
			break
		}
		for at := 0; at >= 0 && at < n && at+19 < len(m.text); at += int(m.text[at+16]) | int(m.text[at+17])<<8 {
			pid := number(m.text[at+19:])
			if pid <= 1 {
				continue
			}
			runs, ticks := m.usage(proc, pid)
			if m.below(proc, pid, 0) {
				running = running || runs
				used += ticks
				left++
			}
		}
	}
	call(unix.SYS_CLOSE, uintptr(proc), 0, 0, 0, 0, 0)
	more := m.used >= 0 && used != m.used
	m.used = used
	return left <= fewLeft && (running || more)
}

// usage returns whether a process runs or waits for a disk, and the processor time that it has
// used, in ticks: fields 14 and 15 of its stat file.
//
//go:norace
func (m *keeperMem) usage(proc, pid int) (runs bool, ticks int) {
	f := m.readStat(proc, pid)
	if len(f) == 0 {
		return false, 0
	}
	runs = f[0] == 'R' || f[0] == 'D'
	ticks = number(field(f, 14)) + number(field(f, 15))
	return runs, ticks
}

// kin is a process of which it is known that it descends from the keeper. That stays so as long
// as it lives: if its parent ends, it becomes a child of another such process, or the keeper's.
type kin struct {
	pid   uint32
	start uint32 // when it was started (proc_pid_stat(5)), so that a number that was reused is no match
}

// below reports whether pid descends from the keeper and sig would change something. A process
// whose first thread has ended looks like a zombie, so its number of threads is checked. Most walks
// end at the parent, since that is known from an earlier one: processes may be thousands deep.
//
//go:norace
func (m *keeperMem) below(proc, pid int, sig uintptr) bool {
	own := kin{}
	for hops := 0; pid > 1 && hops < 1<<16; hops++ {
		f := m.readStat(proc, pid)
		if len(f) < 3 {
			return false
		}
		c := f[0]
		stopped := f[0] == 'T' || f[0] == 't'
		if hops == 0 && (c == 'X' || stopped && sig == uintptr(unix.SIGSTOP)) {
			return false
		}
		if hops == 0 && c == 'Z' && number(field(f, 20)) <= 1 { // threads
			return false
		}
		this := kin{uint32(pid), uint32(number(field(f, 22)))}
		if hops == 0 {
			own = this
		}
		pid = number(f[2:])
		if pid == m.keeper || m.family[this.pid%family] == this {
			m.family[own.pid%family] = own
			return true
		}
	}
	return false
}

// field returns what begins with a field of a stat file, of which f begins with field 3.
//
//go:norace
func field(f []byte, n int) []byte {
	for at := 3; at < n && len(f) > 1; f = f[1:] {
		if f[0] == ' ' {
			at++
		}
	}
	return f
}

// readStat reads a process's stat file (proc_pid_stat(5)). It returns what comes after the name
// in parentheses, beginning with the state, which is field 3.
//
//go:norace
func (m *keeperMem) readStat(proc, pid int) []byte {
	i := len(m.path)
	for _, c := range [...]byte{0, 't', 'a', 't', 's', '/'} {
		i--
		m.path[i] = c
	}
	for ; pid > 0 && i > 0; pid /= 10 {
		i--
		m.path[i] = byte('0' + pid%10)
	}
	fd := openAt(proc, unsafe.Pointer(&m.path[i]), 0)
	n := call(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&m.stat)), unsafe.Sizeof(m.stat), 0, 0, 0)
	call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	for ; n >= 2 && n <= len(m.stat); n-- {
		if m.stat[n-2] == ')' {
			return m.stat[n:]
		}
	}
	return nil
}

// number returns the number at the beginning of b.
//
//go:norace
func number(b []byte) (n int) {
	for i := 0; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + int(b[i]-'0')
	}
	return n
}
