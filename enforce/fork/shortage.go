package fork

import (
	"errors"
	"syscall"
)

// Shortage is something that has run out for now. What fails for it is no
// inability of the machine: the same may succeed a moment later, or once the
// user has raised a limit. So nothing may be left out because of it.
type Shortage struct {
	What string // the resource, and where its limit stands: "files of this process: ulimit -n"
	Hint string // what to type to have more of it, or to see what there is; may be ""
}

// ShortageOf reports what an error is a shortage of, nil if it is none. It goes
// by the errno in err (errno(3)).
func ShortageOf(err error) *Shortage {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return nil
	}
	switch errno {
	case syscall.EMFILE:
		return &Shortage{"files of this process: ulimit -n", "ulimit -n 1024"}
	case syscall.ENFILE:
		return &Shortage{"files of the whole machine: sysctl fs.file-max", "sysctl fs.file-nr"}
	case syscall.ENOMEM:
		return &Shortage{"memory: free, ulimit -v, the control group's memory.max", "free -m"}
	case syscall.ENOBUFS:
		return &Shortage{"memory for sockets", "free -m"}
	case syscall.EAGAIN:
		return &Shortage{"processes, in most cases: ulimit -u, the control group's pids.max", "ulimit -u"}
	case syscall.ENOSPC:
		if step := (*StepError)(nil); errors.As(err, &step) {
			return &Shortage{"namespaces or mounts: sysctl user fs.mount-max", "sysctl user fs.mount-max"}
		}
		return &Shortage{"room on the disk: df -h, df -i", "df -h"}
	case syscall.EDQUOT:
		return &Shortage{"the user's disk quota: quota -s", "quota -s"}
	case syscall.EINTR:
		return &Shortage{"time between two signals", ""}
	}
	return nil
}

// interruptions is how often a system call that a signal interrupted is made
// again. More than a few in a row mean that something is wrong, and an error
// helps more than an endless loop.
const interruptions = 100

// Retry makes a system call again that a signal interrupted, and gives its last
// answer.
func Retry(call func() syscall.Errno) syscall.Errno {
	for try := 0; ; try++ {
		if errno := call(); errno != syscall.EINTR || try == interruptions {
			return errno
		}
	}
}
