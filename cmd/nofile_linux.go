package cmd

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/cmd/internal/nofile"
	"github.com/zsbx/zsbx/enforce/fork"
)

// fileLimitSteps give the command the limit of open files that zsbx was
// started with, which the Go runtime has raised meanwhile.
func fileLimitSteps() []fork.Step {
	soft, hard, known := nofile.AtStart()
	if !known || soft == hard {
		return nil
	}
	lim := &unix.Rlimit{Cur: soft, Max: hard}
	return []fork.Step{{
		Name: "prlimit(2)", Nr: unix.SYS_PRLIMIT64, MayFail: true, Keep: lim,
		Args: [6]uintptr{0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(lim))},
	}}
}
