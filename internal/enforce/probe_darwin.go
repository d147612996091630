package enforce

import (
	"runtime"
	"syscall"

	"github.com/zsbx/zsbx/internal/fork"
)

// Probe asks whether this process is in a sandbox, since then it can't get another. Every start
// proves that the profile works, in the process that applies it.
func Probe() Caps {
	why := fork.NoSandbox()
	return Caps{OS: "macos", Arch: runtime.GOARCH, Seatbelt: why == "", SeatbeltReason: why}
}

// The rest is about namespaces and procfs, which only Linux has.

// ProbeNamespaces does nothing.
func ProbeNamespaces(*Caps) {}

// TryLayers is not called: no plan has layers.
func (p *Plan) TryLayers() Caps { return p.Caps }

func lateHint(syscall.Errno, func(string) string) string { return "" }

func readSmall(string) string { return "" }
