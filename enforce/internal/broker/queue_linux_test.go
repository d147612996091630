package broker

import (
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// faultyQueue gives the errors one after the other, and then success.
func faultyQueue(sent *[]response, errors ...unix.Errno) *queue {
	return &queue{fd: -1, control: func(_ int, request uintptr, arg unsafe.Pointer) unix.Errno {
		if request == unix.SECCOMP_IOCTL_NOTIF_SEND {
			*sent = append(*sent, *(*response)(arg))
		}
		if len(errors) == 0 {
			return 0
		}
		errno := errors[0]
		errors = errors[1:]
		return errno
	}}
}

// TestQueueFaults: an answer that fails for the supervisor's own sake is
// repeated, and one that can't be given is a refusal.
func TestQueueFaults(t *testing.T) {
	const eacces = -int32(unix.EACCES)
	for _, tt := range []struct {
		errors []unix.Errno
		times  int
		last   int32 // errno of the last answer sent
		fails  bool
	}{
		{nil, 1, 0, false},
		{[]unix.Errno{unix.EINTR}, 2, 0, false},
		{[]unix.Errno{unix.EINTR, unix.ENOMEM, unix.EINTR}, 4, 0, false},
		{[]unix.Errno{unix.ENOENT}, 1, 0, false},
		{[]unix.Errno{unix.EINPROGRESS}, 1, 0, false},
		{[]unix.Errno{unix.EINVAL}, 2, eacces, false},
		{[]unix.Errno{unix.EINVAL, unix.EINTR}, 3, eacces, false},
		{[]unix.Errno{unix.EINVAL, unix.EINVAL}, 2, eacces, true},
	} {
		var sent []response
		err := faultyQueue(&sent, tt.errors...).send(7, answer{proceed: true})
		if len(sent) != tt.times || sent[len(sent)-1].errno != tt.last || (err != nil) != tt.fails {
			t.Errorf("%v: sent %+v, %v", tt.errors, sent, err)
		}
		if tt.last != 0 && sent[len(sent)-1].flags != 0 {
			t.Errorf("%v: the refusal lets the call pass", tt.errors)
		}
	}
	for errno, want := range map[unix.Errno]bool{0: true, unix.EINTR: true, unix.ENOMEM: true, unix.ENOENT: false, unix.EBADF: false} {
		if got := faultyQueue(nil, errno).valid(7); got != want {
			t.Errorf("valid after %v: %v", errno, got)
		}
	}
	for errno, fatal := range map[unix.Errno]bool{unix.EINTR: false, unix.ENOENT: false, unix.EINVAL: true, unix.EBADF: true} {
		got, err := faultyQueue(nil, errno).receive(&notification{})
		if got || (err != nil) != fatal {
			t.Errorf("received after %v: %v, %v", errno, got, err)
		}
	}
	for times, fatal := range map[int]bool{1: false, attempts + 1: true} { // it was tried again for ever
		got, err := faultyQueue(nil, slices.Repeat([]unix.Errno{unix.ENOMEM}, times)...).receive(&notification{})
		if got == fatal || (err != nil) != fatal {
			t.Errorf("received after %d times ENOMEM: %v, %v", times, got, err)
		}
	}
}
