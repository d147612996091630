package terminal

import "golang.org/x/sys/unix"

const (
	getSettings, setSettings, setAndFlush = unix.TCGETS, unix.TCSETS, unix.TCSETSF

	noKey = 0 // _POSIX_VDISABLE
)
