package egress

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// Accept accepts a connection. It waits until it can: an error that may pass, such as for want of a
// descriptor, does not end it.
func Accept(l net.Listener) (net.Conn, error) {
	const pause = 20 * time.Millisecond
	for {
		c, err := l.Accept()
		if err == nil || lasts(err) {
			return c, err
		}
		time.Sleep(pause)
	}
}

// lasts reports whether an error of accept(2) is one of the listener. All others are of the connection, the
// network or the machine.
func lasts(err error) bool {
	var errno syscall.Errno
	if errors.Is(err, net.ErrClosed) || !errors.As(err, &errno) {
		return true
	}
	return errno == syscall.EBADF || errno == syscall.EINVAL || errno == syscall.ENOTSOCK
}
