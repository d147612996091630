package broker

import (
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestClosedBeforeAnswer: when the command gets the answer, the broker has no copy of the call's descriptors any more.
// The control: before that it has.
func TestClosedBeforeAnswer(t *testing.T) {
	t.Parallel()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	closed := func() bool {
		p := []unix.PollFd{{Fd: int32(pipe[0])}}
		_, _ = unix.Poll(p, 0)
		return p[0].Revents&unix.POLLHUP != 0
	}
	answers := 0
	control := func(_ int, request uintptr, _ unsafe.Pointer) unix.Errno {
		answers++
		if request != unix.SECCOMP_IOCTL_NOTIF_SEND || !closed() {
			t.Error("the answer comes while the broker has a copy")
		}
		return 0
	}
	c := &Call{broker: &Broker{queue: queue{fd: -1, control: control}}, descriptors: []int{pipe[1]}}
	if closed() {
		t.Fatal("the control: it is closed at once")
	}
	c.finish(answer{}, nil)
	if answers != 1 {
		t.Errorf("%d answers", answers)
	}
}

// TestCrowded: a call that finds all goroutines blocked is answered once another has ended its own, also if that one
// leads from then on. The control: none does.
func TestCrowded(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{true, false} {
		b := &Broker{blocked: maxBlocked, vacant: true}
		if ends {
			time.AfterFunc(4*patience, func() { b.leadOn() })
		}
		if b.crowded() == ends {
			t.Errorf("another has ended its call: %t, crowded: %t", ends, ends)
		}
	}
}
