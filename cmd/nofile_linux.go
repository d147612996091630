package cmd

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/nofile"
)

// leastFiles is how many open files a start takes. With fewer it may be Go's
// runtime that finds no room first, and it ends in a traceback.
const leastFiles = 17

// enoughFiles refuses to try with fewer.
func enoughFiles() error {
	_, hard, known := nofile.AtStart()
	if !known || hard >= leastFiles {
		return nil
	}
	return fmt.Errorf("only %d files may be open at once (ulimit -n), but zsbx needs %d", hard, leastFiles)
}

// fewFiles is a limit of open files below which zsbx makes room for its own.
const fewFiles = 64

// closeInherited closes the descriptors that zsbx's caller left open, where
// there is little room: the command does not get them in any case. They are
// those that do not close on exec.
func closeInherited() {
	soft, _, known := nofile.AtStart()
	if !known || soft > fewFiles {
		return
	}
	for fd := 3; fd < int(soft); fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}
