//go:build linux && amd64

package faults

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// What can go wrong with a call on a machine that runs out of something.
var (
	noFiles  = []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM}
	noOpen   = []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR, unix.EACCES}
	noTask   = []syscall.Errno{unix.EAGAIN, unix.ENOMEM}
	noMemory = []syscall.Errno{unix.ENOMEM}
	noSpace  = []syscall.Errno{unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS}
	noWrite  = []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EINTR}
	noRead   = []syscall.Errno{unix.EINTR, unix.EIO, unix.ENOMEM}
	noSocket = []syscall.Errno{unix.ENOBUFS, unix.ENOMEM, unix.EINTR}
	noMount  = []syscall.Errno{unix.ENOSPC, unix.ENOMEM, unix.EPERM, unix.EINTR}
	noRule   = []syscall.Errno{unix.ENOMEM, unix.EINTR, unix.EAGAIN, unix.EPERM}
	noWait   = []syscall.Errno{unix.EINTR, unix.ENOMEM}
	refused  = []syscall.Errno{unix.EPERM, unix.ENOMEM}
)

// calls are the system calls that can fail for a reason outside the program, and how. Those that
// can't, or only because of a mistake in the program, are not here.
var calls = []struct {
	name   string
	number uintptr
	errnos []syscall.Errno
}{
	{"openat", unix.SYS_OPENAT, noOpen}, {"openat2", unix.SYS_OPENAT2, noOpen}, {"open_tree", unix.SYS_OPEN_TREE, noMount},
	{"pipe2", unix.SYS_PIPE2, noFiles}, {"socket", unix.SYS_SOCKET, noFiles}, {"socketpair", unix.SYS_SOCKETPAIR, noFiles},
	{"dup3", unix.SYS_DUP3, noFiles}, {"fcntl", unix.SYS_FCNTL, noFiles}, {"signalfd4", unix.SYS_SIGNALFD4, noFiles},
	{"pidfd_open", unix.SYS_PIDFD_OPEN, noFiles}, {"pidfd_getfd", unix.SYS_PIDFD_GETFD, []syscall.Errno{unix.EMFILE, unix.ENOMEM, unix.EINTR, unix.EPERM}},
	{"epoll_create1", unix.SYS_EPOLL_CREATE1, noFiles}, {"eventfd2", unix.SYS_EVENTFD2, noFiles}, {"epoll_ctl", unix.SYS_EPOLL_CTL, noSpace[:1]},
	{"inotify_init1", unix.SYS_INOTIFY_INIT1, noFiles}, {"memfd_create", unix.SYS_MEMFD_CREATE, noFiles}, {"accept4", unix.SYS_ACCEPT4, noFiles},
	{"clone", unix.SYS_CLONE, noTask}, {"clone3", unix.SYS_CLONE3, noTask}, {"vfork", unix.SYS_VFORK, noTask}, {"execve", unix.SYS_EXECVE, append(noTask, unix.EMFILE)},
	{"mmap", unix.SYS_MMAP, noMemory}, {"mprotect", unix.SYS_MPROTECT, noMemory},
	{"write", unix.SYS_WRITE, noWrite}, {"pwrite64", unix.SYS_PWRITE64, noWrite}, {"fsync", unix.SYS_FSYNC, noSpace}, {"ftruncate", unix.SYS_FTRUNCATE, noSpace},
	{"mkdirat", unix.SYS_MKDIRAT, noSpace}, {"renameat", unix.SYS_RENAMEAT, noSpace}, {"renameat2", unix.SYS_RENAMEAT2, noSpace}, {"linkat", unix.SYS_LINKAT, noSpace},
	{"symlinkat", unix.SYS_SYMLINKAT, noSpace}, {"unlinkat", unix.SYS_UNLINKAT, []syscall.Errno{unix.EIO, unix.EROFS, unix.ENOMEM}},
	{"unlink", unix.SYS_UNLINK, []syscall.Errno{unix.EIO}}, {"rmdir", unix.SYS_RMDIR, []syscall.Errno{unix.EIO}},
	{"read", unix.SYS_READ, noRead}, {"pread64", unix.SYS_PREAD64, noRead}, {"getdents64", unix.SYS_GETDENTS64, noRead}, {"readlinkat", unix.SYS_READLINKAT, noRead},
	{"newfstatat", unix.SYS_NEWFSTATAT, noRead}, {"fstat", unix.SYS_FSTAT, noRead}, {"statfs", unix.SYS_STATFS, noRead}, {"fstatfs", unix.SYS_FSTATFS, noRead},
	{"statx", unix.SYS_STATX, noRead}, {"lstat", unix.SYS_LSTAT, noRead}, {"getcwd", unix.SYS_GETCWD, noMemory}, {"flock", unix.SYS_FLOCK, []syscall.Errno{unix.EINTR, unix.ENOLCK}},
	{"faccessat", unix.SYS_FACCESSAT, noRead}, {"faccessat2", unix.SYS_FACCESSAT2, noRead}, {"chdir", unix.SYS_CHDIR, noMemory}, {"fchdir", unix.SYS_FCHDIR, noMemory},
	{"fchmod", unix.SYS_FCHMOD, noSpace[2:]}, {"fchmodat", unix.SYS_FCHMODAT, noSpace[2:]}, {"utimensat", unix.SYS_UTIMENSAT, noSpace[2:]}, {"listxattr", unix.SYS_LISTXATTR, noRead},
	{"sendto", unix.SYS_SENDTO, noSocket}, {"sendmsg", unix.SYS_SENDMSG, noSocket}, {"recvfrom", unix.SYS_RECVFROM, noSocket}, {"recvmsg", unix.SYS_RECVMSG, noSocket},
	{"connect", unix.SYS_CONNECT, append(noSocket, unix.EAGAIN)}, {"getsockopt", unix.SYS_GETSOCKOPT, noSocket}, {"bind", unix.SYS_BIND, noSocket},
	{"unshare", unix.SYS_UNSHARE, append(noMount, unix.EAGAIN)}, {"setns", unix.SYS_SETNS, noMount}, {"mount", unix.SYS_MOUNT, noMount},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, noMount}, {"move_mount", unix.SYS_MOVE_MOUNT, noMount},
	{"landlock_create_ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, append(noRule, unix.EMFILE)},
	{"landlock_add_rule", unix.SYS_LANDLOCK_ADD_RULE, noRule}, {"landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, noRule},
	{"seccomp", unix.SYS_SECCOMP, append(noRule, unix.EMFILE)}, {"prctl", unix.SYS_PRCTL, refused}, {"capget", unix.SYS_CAPGET, refused}, {"capset", unix.SYS_CAPSET, refused},
	{"setsid", unix.SYS_SETSID, refused}, {"prlimit64", unix.SYS_PRLIMIT64, refused}, {"close_range", unix.SYS_CLOSE_RANGE, []syscall.Errno{unix.EMFILE, unix.ENOMEM}},
	{"ioctl", unix.SYS_IOCTL, noWait}, {"wait4", unix.SYS_WAIT4, noWait[:1]}, {"waitid", unix.SYS_WAITID, noWait[:1]}, {"poll", unix.SYS_POLL, noWait}, {"ppoll", unix.SYS_PPOLL, noWait},
	{"epoll_pwait", unix.SYS_EPOLL_PWAIT, noWait[:1]}, {"kill", unix.SYS_KILL, refused[:1]}, {"pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL, refused},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, refused}, {"splice", unix.SYS_SPLICE, noWrite}, {"copy_file_range", unix.SYS_COPY_FILE_RANGE, noWrite},
	{"getrandom", unix.SYS_GETRANDOM, noWait[:1]}, {"timerfd_create", unix.SYS_TIMERFD_CREATE, noFiles}, {"setitimer", unix.SYS_SETITIMER, noMemory},
}

var callByNumber = func() map[uintptr]int {
	m := map[uintptr]int{}
	for i, c := range calls {
		m[c.number] = i
	}
	return m
}()

// dynamic says that this test has a dynamic loader and a C library (cgo), which end the program if they get no memory
// or thread. The zsbx that users have is linked without them.
var dynamic = func() bool {
	maps, err := os.ReadFile("/proc/self/maps")
	return err == nil && bytes.Contains(maps, []byte("/ld-"))
}()

// faults lists what can be made to fail in a run that made the calls in seen, always in the same
// order.
func faults(seen map[fault]int) []fault {
	var out []fault
	for key, n := range seen {
		if dynamic && key.Who == 0 && slices.Contains([]string{"mmap", "mprotect", "clone3"}, calls[key.Call].name) {
			continue
		}
		for nth := 1; nth <= n; nth++ {
			for _, errno := range calls[key.Call].errnos {
				out = append(out, fault{key.Who, key.Call, nth, errno, false})
			}
		}
		for _, errno := range calls[key.Call].errnos {
			if lasts(errno) {
				out = append(out, fault{key.Who, key.Call, 1, errno, true})
			}
		}
	}
	slices.SortFunc(out, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Nth, b.Nth), cmp.Compare(a.Errno, b.Errno))
	})
	return out
}

// lasts reports whether an errno is a shortage that does not end by itself.
func lasts(errno syscall.Errno) bool {
	switch errno {
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOSPC, unix.EDQUOT, unix.ENOBUFS:
		return true
	}
	return false
}

// sample takes n of the faults, evenly.
func sample(all []fault, n int) []fault {
	if n <= 0 || n >= len(all) {
		return all
	}
	out := make([]fault, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}
