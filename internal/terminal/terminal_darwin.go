package terminal

import "golang.org/x/sys/unix"

const (
	// GetSettings is the request that reads a terminal's settings.
	GetSettings = unix.TIOCGETA

	SetSettings, setAndFlush = unix.TIOCSETA, unix.TIOCSETAF

	noKey = 0xff // _POSIX_VDISABLE
)
