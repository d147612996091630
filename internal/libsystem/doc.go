// Package libsystem binds the few functions of macOS's libSystem that golang.org/x/sys lacks,
// such as sandbox_init(3) and proc_listpids. Like x/sys it does so without cgo, so that macOS
// programs can be built on any system.
//
// libsystem_darwin.s has an entry of one jump for each function. The Go runtime calls it on a
// thread's system stack. sandbox_check takes a variable number of arguments, which Apple's
// arm64 convention passes on the stack, not in registers. So it must be called by syscall6,
// which puts the fourth argument in both places (see runtime/sys_darwin_arm64.s). Otherwise it
// would read garbage and return -1.
//
// The package decides nothing: callers interpret the answers. On other systems it has only
// constants, and a UserTemp that returns "".
package libsystem

// Filter is a kind of argument of SandboxCheck.
type Filter uintptr

// The filters of sandbox_check. The numbers come from Apple's private header, and many programs
// use them.
const (
	FilterNone       Filter = 0 // no argument
	FilterPath       Filter = 1 // a canonical path, "/private/tmp/x"
	FilterGlobalName Filter = 2 // the name of a service
)

// noReport keeps a check out of the system's log.
const noReport Filter = 0x40000000

// Answers of SandboxCheck.
const (
	Allowed  = 0
	Denied   = 1
	NoAnswer = -1
)
