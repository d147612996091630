package terminal

import "golang.org/x/sys/unix"

const (
	getSettings, setSettings, setAndFlush = unix.TIOCGETA, unix.TIOCSETA, unix.TIOCSETAF

	noKey = 0xff // _POSIX_VDISABLE
)
