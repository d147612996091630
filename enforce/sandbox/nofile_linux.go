package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/internal/nofile"
)

// fileLimitSteps give the command the limit of open files that this process was
// started with, which the Go runtime has raised meanwhile.
func fileLimitSteps(c *fork.Command) []fork.Step {
	soft, hard, known := nofile.AtStart()
	if !known || soft == hard {
		return nil
	}
	lim := fork.Put(c.Memory(), unix.Rlimit{Cur: soft, Max: hard})
	return []fork.Step{{
		Name: "prlimit(2)", Nr: unix.SYS_PRLIMIT64, MayFail: true,
		Args: [6]uintptr{0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(lim))},
	}}
}
