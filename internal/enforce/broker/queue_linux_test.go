package broker

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// faultyQueue returns a queue whose calls fail with these errors in turn, and then succeed.
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

// TestQueueFaults: an answer that fails for lack of memory is repeated, and one that can't be
// given becomes a refusal.
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
	for times, fatal := range map[int]bool{1: false, attempts + 1: true} { // it would be tried for ever
		got, err := faultyQueue(nil, slices.Repeat([]unix.Errno{unix.ENOMEM}, times)...).receive(&notification{})
		if got == fatal || (err != nil) != fatal {
			t.Errorf("received after %d times ENOMEM: %v, %v", times, got, err)
		}
	}
}

// TestInterrupt: at the end no goroutine waits for a call any more, even if the kernel does not
// wake it, as before Linux 6.11.
func TestInterrupt(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	b := &Broker{over: make(chan struct{})}
	b.session.top = unix.Getpid()
	b.queue = queue{p[0], func(int, uintptr, unsafe.Pointer) unix.Errno {
		select {
		case <-waits:
		default:
			close(waits)
		}
		_, err := unix.Poll(nil, -1) // it is not restarted after a signal's handler
		return asErrno(err)
	}}
	b.received.Do(func() {})
	served := make(chan error)
	go func() { served <- b.Serve() }()
	<-waits
	unix.Close(p[1])
	select {
	case err := <-served:
		if n := b.receiving.Load(); err != nil || n != 0 {
			t.Fatalf("%v, %d still wait", err, n)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("it waits for ever")
	}
	b.workers.Wait()
}

// TestOver: a goroutine that waits for a call ends by itself if the kernel reports that none
// will come, as since Linux 6.11.
func TestOver(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	b := &Broker{over: make(chan struct{}), stop: [2]int{-1, -1}}
	asked := 0
	b.queue = queue{p[0], func(int, uintptr, unsafe.Pointer) unix.Errno {
		asked++
		switch asked {
		case 3: // before, it may mean that a caller was killed
			unix.Close(p[1])
		case 4:
			t.Error("it asks again")
			b.finish(nil)
		}
		return unix.ENOENT
	}}
	if b.next(&Call{broker: b}) || asked < 3 || !b.isOver() {
		t.Errorf("asked %d times", asked)
	}
}
