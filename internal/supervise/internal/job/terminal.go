package job

import "golang.org/x/sys/unix"

// openTerminal opens the controlling terminal (tty(4)).
func openTerminal() (int, error) {
	return unix.Open("/dev/tty", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// HasTerminal reports whether zsbx has a controlling terminal.
func HasTerminal() bool {
	fd, err := openTerminal()
	unix.Close(fd)
	return err == nil
}

// InForeground reports whether zsbx is in the foreground process group of its
// terminal, the one that keyboard signals go to.
func InForeground() bool {
	return Foreground() == unix.Getpgrp()
}

// Foreground returns the foreground process group of the terminal, or 0 without one.
func Foreground() int {
	fd, err := openTerminal()
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	pgrp, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return pgrp
}

// SetForeground makes pgrp the terminal's foreground process group (tcsetpgrp(3)), if
// zsbx is in the current one.
func SetForeground(pgrp int) {
	if pgrp <= 0 || pgrp == unix.Getpgrp() || !InForeground() {
		return
	}
	fd, err := openTerminal()
	if err != nil {
		return
	}
	defer unix.Close(fd)
	unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, pgrp)
}
