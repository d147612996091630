package fingerprint

import "github.com/zsbx/zsbx/internal/libsystem"

// Ask asks the kernel whether process pid is in a sandbox and, if it is, whether it may look up
// the session's two names. The answers are those of libsystem.SandboxCheck.
func Ask(pid int, session string) (sandboxed, allow, deny int) {
	sandboxed = libsystem.SandboxCheck(pid, "", libsystem.FilterNone, "")
	if sandboxed != libsystem.Denied {
		return sandboxed, libsystem.NoAnswer, libsystem.NoAnswer
	}
	n := Name(session)
	return sandboxed, libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".allow"),
		libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".deny")
}
