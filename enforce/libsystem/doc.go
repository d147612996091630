// Package libsystem binds the few functions of macOS's libSystem that
// golang.org/x/sys has not: those of sandbox_init(3), and proc_listpids, in the
// way x/sys binds the others: without cgo, so that macOS programs can be built
// on any system.
//
// Each function has an entry of one jump in libsystem_darwin.s; the Go runtime
// calls it on a thread's system stack. sandbox_check takes a variable number of
// arguments, which Apple's arm64 convention passes on the stack and not in
// registers: it has to be called by syscall6, which puts its fourth argument in
// both places (see runtime/sys_darwin_arm64.s). Called otherwise it finds
// rubbish and answers -1.
//
// The package decides nothing: what answers mean is its callers' business. On
// other systems it has constants, and no directory for temporary files.
package libsystem

// Filter is a kind of argument of SandboxCheck.
type Filter uintptr

// The filters of sandbox_check. The numbers are those of Apple's private
// header, in use by many programs.
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
