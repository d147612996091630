//go:build amd64 || arm64

package quiet

import "unsafe"

// The runtime writes its last words with overrideWrite, if that is set. It has a
// value here before the first instruction of the program: the linker puts it there.
// write runs on any stack, in a signal handler, with the heap in any state. So it
// and what it calls are nosplit, and touch nothing but this file's variables.

//go:linkname overrideWrite runtime.overrideWrite
var overrideWrite = write

var (
	started bool      // main runs
	begun   *uint32   // leads to another value than 0 once a command may run
	line    [200]byte // what the runtime said so far
	used    int
)

// Started says that main runs: from now on the runtime may speak of zsbx's bugs.
func Started() { started = true }

// Begun says where to look whether a command runs, which is killed when zsbx ends;
// nil says that none does.
func Begun(word *uint32) { begun = word }

// write has the arguments and the result of write(2). The runtime calls it for each
// piece of a line.
//
//go:nosplit
//go:norace
func write(fd uintptr, p unsafe.Pointer, n int32) int32 {
	before := used
	for i := int32(0); i < n && used < len(line); i++ {
		line[used] = *(*byte)(unsafe.Add(p, i))
		used++
	}
	if used == 0 || !lastWord() {
		used = 0
		call(sysWrite, fd, uintptr(unsafe.Pointer(&line)), uintptr(before), 0)
		return int32(call(sysWrite, fd, uintptr(p), uintptr(n), 0))
	}
	switch {
	case line[used-1] != '\n' && used < len(line):
		return n
	case starts("SIGQUIT"):
		end(sigquit)
	case starts("SIGABRT"):
		end(sigabrt)
	}
	say("zsbx: error: ")
	call(sysWrite, 2, uintptr(unsafe.Pointer(&line)), uintptr(used), 0)
	say("zsbx: hint: a limit on memory, processes or open files may be too low: ulimit -a\n")
	if begun != nil && *begun != 0 {
		say("zsbx: error: how the command ended is not known: zsbx ended first, and what still ran was killed\n")
		call(sysExitGroup, 128+sigkill, 0, 0, 0)
	}
	call(sysExitGroup, 125, 0, 0, 0)
	return n
}

// shortages are how the runtime begins to say what it could not get.
var shortages = [...]string{
	"runtime: failed to create new OS thread",
	"runtime: out of memory", "fatal error: out of memory", "fatal error: runtime: out of memory",
	"fatal error: runtime: cannot allocate memory", "runtime: mmap: ",
	"runtime: epollcreate failed", "runtime: eventfd failed", "runtime: epollctl failed", "runtime: netpollBreak write failed",
}

// lastWord reports whether the line is one before the runtime's end, and not for a
// bug of zsbx. Others are those that GODEBUG asks for, and tracebacks.
//
//go:nosplit
//go:norace
func lastWord() bool {
	if started {
		for i := range shortages {
			if starts(shortages[i]) {
				return true
			}
		}
		return false
	}
	return starts("runtime: ") || starts("fatal error: ") || starts("SIGQUIT") || starts("SIGABRT")
}

// starts reports whether the line begins with the text, as far as there is a line.
//
//go:nosplit
//go:norace
func starts(text string) bool {
	for i := 0; i < len(text) && i < used; i++ {
		if line[i] != text[i] {
			return false
		}
	}
	return true
}

//go:nosplit
//go:norace
func say(text string) {
	call(sysWrite, 2, uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(len(text)), 0)
}

// end ends zsbx by the signal, which its handler has blocked.
//
//go:nosplit
//go:norace
func end(signal uintptr) {
	giveBack(signal)
	set := uint64(1) << (signal - 1)
	const unblock = 1
	if call(sysGetpid, 0, 0, 0, 0) == 1 { // its own signals don't end init (pid_namespaces(7))
		call(sysExitGroup, 128+signal, 0, 0, 0)
	}
	for { // where another thread takes the signal this one has time to go on
		call(sysKill, call(sysGetpid, 0, 0, 0, 0), signal, 0, 0)
		call(sysSigprocmask, unblock, uintptr(unsafe.Pointer(&set)), 0, 8)
	}
}
