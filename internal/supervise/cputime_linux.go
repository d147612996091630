package supervise

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigevent is struct sigevent (sigevent(3type)).
type sigevent struct {
	value          uint64
	signal, notify int32
	_              [48]byte
}

// endInTime ends the session when this process has used half of its processor time (RLIMIT_CPU,
// ulimit -t). A command decides how much the broker has to do, and at the limit the kernel kills
// this process, which could not report then. The keeper does the same for its own time.
func (c *Command) endInTime() {
	var limit unix.Rlimit
	if !c.o.Job || unix.Getrlimit(unix.RLIMIT_CPU, &limit) != nil || limit.Cur > 1<<32 {
		return
	}
	used := make(chan os.Signal, 1)
	signal.Notify(used, syscall.SIGXCPU)
	event := sigevent{signal: int32(syscall.SIGXCPU)} // SIGEV_SIGNAL is 0
	var timer int32
	_, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_PROCESS_CPUTIME_ID,
		uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer)))
	if errno != 0 {
		return
	}
	half := unix.NsecToTimespec(int64(limit.Cur) * 1e9 / 2)
	at := [2]unix.Timespec{1: half} // struct itimerspec
	const absolute = 1              // TIMER_ABSTIME
	_, _, _ = unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), absolute, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
	go func() {
		<-used
		_ = c.s.Kill()
	}()
}
