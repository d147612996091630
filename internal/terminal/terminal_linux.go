package terminal

import "golang.org/x/sys/unix"

const (
	// GetSettings is the request that reads a terminal's settings.
	GetSettings = unix.TCGETS

	// SetSettings changes them at once, setAndFlush also drops what was typed.
	SetSettings, setAndFlush = unix.TCSETS, unix.TCSETSF

	noKey = 0 // _POSIX_VDISABLE
)
