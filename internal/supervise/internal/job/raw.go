package job

import (
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/terminal"
)

// IsRaw reports whether standard error is a terminal that does not edit lines (termios(3)), as full-screen
// programs have it: a line from somebody else would spoil their screen.
func IsRaw() bool {
	t, err := unix.IoctlGetTermios(unix.Stderr, terminal.GetSettings)
	return err == nil && t.Lflag&unix.ICANON == 0
}
