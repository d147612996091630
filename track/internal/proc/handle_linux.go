package proc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Handle is a descriptor of one process, which no reuse of the number can
// change: see pidfd_open(2). It needs Linux 5.3.
type Handle struct {
	Process // as it was when it was opened
	fd      int
}

// ErrGone says that the process is no more, or is another one by now.
var ErrGone = errors.New("the process is gone")

// Gone reports whether err says that there is no such process.
func Gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// Open opens the process that id names. Its start time is compared after
// the descriptor was opened, and the descriptor asked last whether the process
// still lives: so the time read was that of the process it stands for.
func Open(id ID) (*Handle, error) {
	if id.Pid <= 1 {
		return nil, ErrGone
	}
	fd, err := unix.PidfdOpen(id.Pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd_open(%d): %w", id.Pid, err)
	}
	h := &Handle{fd: fd}
	h.Process, err = Look(id.Pid)
	if Gone(err) || err == nil && (h.Start != id.Start || h.ended(0)) {
		err = ErrGone
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Handle) Close() { unix.Close(h.fd) }

// ended reports whether the process has exited, within some milliseconds. A
// zombie has.
func (h *Handle) ended(wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, wait)
	if err != nil && !errors.Is(err, unix.EINTR) {
		Pause(time.Duration(wait) * time.Millisecond)
	}
	return n > 0
}

// Pause is time.Sleep without a timer of Go's runtime: see track.Within.
func Pause(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&left, nil)
}

// Wait waits until the process has ended or ctx is done, and reports the first.
func (h *Handle) Wait(ctx context.Context) bool {
	const slice = 50 // milliseconds in which to look at ctx
	for !h.ended(slice) {
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// Signal sends sig; ErrGone if the process was reaped.
func (h *Handle) Signal(sig unix.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}
