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

// shortages are what an error number says has run out (errno(3)).
var shortages = map[syscall.Errno]Shortage{
	syscall.EMFILE:  {"files of this process: ulimit -n", "ulimit -n 1024"},
	syscall.ENFILE:  {"files of the whole machine: sysctl fs.file-max", "sysctl fs.file-nr"},
	syscall.ENOMEM:  {"memory: free, ulimit -v, the control group's memory.max", "free -m"},
	syscall.ENOBUFS: {"memory for sockets", "free -m"},
	syscall.EAGAIN:  {"processes, in most cases: ulimit -u, the control group's pids.max", "ulimit -u"},
	syscall.ENOSPC:  {"room on the disk: df -h, df -i", "df -h"},
	syscall.EDQUOT:  {"the user's disk quota: quota -s", "quota -s"},
	syscall.EINTR:   {"time between two signals", ""},
}

// ShortageOf reports what an error is a shortage of, nil if it is none.
func ShortageOf(err error) *Shortage {
	errno, _ := errors.AsType[syscall.Errno](err)
	s, ok := shortages[errno]
	if !ok {
		return nil
	}
	if _, step := errors.AsType[*StepError](err); step && errno == syscall.ENOSPC {
		s = Shortage{"namespaces or mounts: sysctl user fs.mount-max", "sysctl user fs.mount-max"}
	}
	return &s
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
