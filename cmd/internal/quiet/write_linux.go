//go:build amd64 || arm64

package quiet

import "unsafe"

// The runtime writes its messages with overrideWrite, if that is set. The linker sets it
// to write, before the first instruction of the program. write may run on any stack, in
// a signal handler, with the heap in any state. So it and what it calls are nosplit, and
// touch only this file's variables.

//go:linkname overrideWrite runtime.overrideWrite
var overrideWrite = write

var (
	begun *uint32   // points to a value other than 0 once a command may run
	line  [200]byte // what the runtime said so far
	used  int
)

// Begun sets the word that is not 0 while a command runs, which is killed when zsbx ends.
// nil means that none runs.
func Begun(word *uint32) { begun = word }

// write has the arguments and the result of write(2). The runtime calls it for each piece
// of a line.
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
		call(sysExitGroup, 128+sigquit, 0, 0, 0)
	case starts("SIGABRT"):
		call(sysExitGroup, 128+sigabrt, 0, 0, 0)
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

// last has the beginnings of messages that are not about a bug of zsbx: the runtime could
// not get something, or a signal came before plain reset it. All else are tracebacks, and
// what GODEBUG asks for.
var last = [...]string{"runtime: ", "fatal error: runtime: ", "fatal error: out of memory", "fatal error: failed to ", "SIGQUIT", "SIGABRT"}

//go:nosplit
//go:norace
func lastWord() bool {
	for i := range last {
		if starts(last[i]) {
			return true
		}
	}
	return false
}

// starts reports whether the line begins with text, or is the beginning of it so far.
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
