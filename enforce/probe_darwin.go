package enforce

import (
	"os"
	"runtime"
	"syscall"

	"github.com/zsbx/zsbx/enforce/libsystem"
)

// Probe asks whether this process is in a sandbox, since then it can't get another. Every start
// proves that the profile works, in the process that applies it.
func Probe() Caps {
	c := Caps{OS: "macos", Arch: runtime.GOARCH}
	switch libsystem.SandboxCheck(os.Getpid(), "", libsystem.FilterNone, "") {
	case libsystem.Allowed:
		c.Seatbelt = true
	case libsystem.Denied:
		c.SeatbeltReason = "this process runs in a sandbox already, and macOS can't nest them"
	default:
		c.SeatbeltReason = "sandbox_check gives no answer"
	}
	return c
}

// The rest is about namespaces and procfs, which only Linux has.

// ProbeNamespaces does nothing.
func ProbeNamespaces(*Caps) {}

func lateHint(syscall.Errno) string { return "" }

func readSmall(string) string { return "" }
