package egress

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// failing is a listener that fails, and then accepts.
type failing struct {
	net.Listener
	with []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.with) == 0 {
		return nil, nil
	}
	err := f.with[0]
	f.with = f.with[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
}

// TestAccept: what may pass is waited for, and a listener that can accept no more is told.
func TestAccept(t *testing.T) {
	passes := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOSPC, syscall.EPERM,
		syscall.ECONNABORTED, syscall.ENETDOWN, syscall.EPROTO}
	var all []error
	for _, errno := range passes {
		all = append(all, os.NewSyscallError("accept4", errno))
	}
	if _, err := Accept(&failing{with: all}); err != nil {
		t.Error(err)
	}
	for _, lasting := range []error{syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, net.ErrClosed, errors.New("another")} {
		if _, err := Accept(&failing{with: []error{lasting}}); !errors.Is(err, lasting) {
			t.Errorf("%v: %v", lasting, err)
		}
	}
}
