package fork

import (
	"errors"
	"os"
	"syscall"
)

// Shortage is a resource that has run out for now. A failure for lack of it does not mean that
// the machine is unable to do something: it may work a moment later, or once the user has
// raised a limit. So it must not count as a missing capability.
type Shortage struct {
	What string // the resource, and where its limit is set: "files of this process: ulimit -n"
	Hint string // what to type to get more, or to see what there is; may be ""
}

// shortages says what has run out for each errno (errno(3)).
var shortages = map[syscall.Errno]Shortage{
	syscall.EMFILE:  {"files of this process: ulimit -n", "ulimit -n 1024"},
	syscall.ENFILE:  {"files of the whole machine: sysctl fs.file-max", "sysctl fs.file-nr"},
	syscall.ENOMEM:  {"memory: free, ulimit -v, the control group's memory.max", "free -m"},
	syscall.ENOBUFS: {"memory for sockets", "free -m"},
	syscall.EAGAIN:  {"processes, in most cases: ulimit -u, the control group's pids.max", "ulimit -u"},
	syscall.ENOSPC:  {"room on the disk: df -h, df -i", "df -h"},
	syscall.EDQUOT:  {"the user's disk quota: quota -s", "quota -s"},
	syscall.ETOOMANYREFS: {"descriptors in flight (unix(7)): the user's processes, perhaps a kept session's, " +
		"have sent more than ulimit -n allows", "zsbx ps"},
	syscall.EFBIG: {"the size that a file may have: ulimit -f", "ulimit -f unlimited"},
	syscall.EINTR: {"time between two signals", ""},
}

// ShortageOf returns the shortage that an error is about, or nil. It goes by the errno in err.
func ShortageOf(err error) *Shortage {
	errno, _ := errors.AsType[syscall.Errno](err)
	s, ok := shortages[errno]
	if !ok {
		return nil
	}
	if _, step := errors.AsType[*StepError](err); step && errno == syscall.ENOSPC {
		s = Shortage{"namespaces or mounts: sysctl user fs.mount-max", "sysctl user fs.mount-max"}
	}
	if errno == syscall.EFBIG && os.Geteuid() != 0 {
		s = fileSize(s)
	}
	return &s
}

// fileSize says how far an ordinary user can raise the limit.
func fileSize(s Shortage) Shortage {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil || limit.Cur < limit.Max {
		s.Hint = "ulimit -S -f $(ulimit -H -f)"
		return s
	}
	return Shortage{s.What + ", which only root can raise", "ulimit -H -f"}
}

// interruptions is how often an interrupted system call is repeated. More than a few in a row
// mean that something is wrong, and an error is better than an endless loop.
const interruptions = 100

// Retry repeats a system call that a signal interrupts, and returns its last result.
func Retry(call func() syscall.Errno) syscall.Errno {
	for try := 0; ; try++ {
		if errno := call(); errno != syscall.EINTR || try == interruptions {
			return errno
		}
	}
}
