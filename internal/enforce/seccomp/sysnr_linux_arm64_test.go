package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSyscallNumbers(t *testing.T) {
	want := map[string]int{
		"bind":               unix.SYS_BIND,
		"execve":             unix.SYS_EXECVE,
		"execveat":           unix.SYS_EXECVEAT,
		"fchmod":             unix.SYS_FCHMOD,
		"fchmodat":           unix.SYS_FCHMODAT,
		"fchmodat2":          unix.SYS_FCHMODAT2,
		"fremovexattr":       unix.SYS_FREMOVEXATTR,
		"fsetxattr":          unix.SYS_FSETXATTR,
		"linkat":             unix.SYS_LINKAT,
		"lremovexattr":       unix.SYS_LREMOVEXATTR,
		"lsetxattr":          unix.SYS_LSETXATTR,
		"mkdirat":            unix.SYS_MKDIRAT,
		"mknodat":            unix.SYS_MKNODAT,
		"pidfd_getfd":        unix.SYS_PIDFD_GETFD,
		"process_vm_readv":   unix.SYS_PROCESS_VM_READV,
		"process_vm_writev":  unix.SYS_PROCESS_VM_WRITEV,
		"ptrace":             unix.SYS_PTRACE,
		"removexattr":        unix.SYS_REMOVEXATTR,
		"renameat":           unix.SYS_RENAMEAT,
		"renameat2":          unix.SYS_RENAMEAT2,
		"setxattr":           unix.SYS_SETXATTR,
		"symlinkat":          unix.SYS_SYMLINKAT,
		"unlinkat":           unix.SYS_UNLINKAT,
		"utimensat":          unix.SYS_UTIMENSAT,
		"acct":               unix.SYS_ACCT,
		"add_key":            unix.SYS_ADD_KEY,
		"bpf":                unix.SYS_BPF,
		"clock_settime":      unix.SYS_CLOCK_SETTIME,
		"clone":              unix.SYS_CLONE,
		"unshare":            unix.SYS_UNSHARE,
		"clone3":             unix.SYS_CLONE3,
		"connect":            unix.SYS_CONNECT,
		"exit_group":         unix.SYS_EXIT_GROUP,
		"kill":               unix.SYS_KILL,
		"tkill":              unix.SYS_TKILL,
		"tgkill":             unix.SYS_TGKILL,
		"rt_sigqueueinfo":    unix.SYS_RT_SIGQUEUEINFO,
		"rt_tgsigqueueinfo":  unix.SYS_RT_TGSIGQUEUEINFO,
		"pidfd_send_signal":  unix.SYS_PIDFD_SEND_SIGNAL,
		"delete_module":      unix.SYS_DELETE_MODULE,
		"fanotify_init":      unix.SYS_FANOTIFY_INIT,
		"fchown":             unix.SYS_FCHOWN,
		"fchownat":           unix.SYS_FCHOWNAT,
		"fcntl":              unix.SYS_FCNTL,
		"finit_module":       unix.SYS_FINIT_MODULE,
		"fsconfig":           unix.SYS_FSCONFIG,
		"fsmount":            unix.SYS_FSMOUNT,
		"fsopen":             unix.SYS_FSOPEN,
		"fspick":             unix.SYS_FSPICK,
		"init_module":        unix.SYS_INIT_MODULE,
		"mq_unlink":          unix.SYS_MQ_UNLINK,
		"io_uring_enter":     unix.SYS_IO_URING_ENTER,
		"io_uring_register":  unix.SYS_IO_URING_REGISTER,
		"io_uring_setup":     unix.SYS_IO_URING_SETUP,
		"ioctl":              unix.SYS_IOCTL,
		"ioprio_set":         unix.SYS_IOPRIO_SET,
		"kexec_file_load":    unix.SYS_KEXEC_FILE_LOAD,
		"kexec_load":         unix.SYS_KEXEC_LOAD,
		"keyctl":             unix.SYS_KEYCTL,
		"listen":             unix.SYS_LISTEN,
		"migrate_pages":      unix.SYS_MIGRATE_PAGES,
		"mount":              unix.SYS_MOUNT,
		"mount_setattr":      unix.SYS_MOUNT_SETATTR,
		"move_mount":         unix.SYS_MOVE_MOUNT,
		"move_pages":         unix.SYS_MOVE_PAGES,
		"open_by_handle_at":  unix.SYS_OPEN_BY_HANDLE_AT,
		"open_tree":          unix.SYS_OPEN_TREE,
		"open_tree_attr":     unix.SYS_OPEN_TREE_ATTR,
		"openat":             unix.SYS_OPENAT,
		"openat2":            unix.SYS_OPENAT2,
		"perf_event_open":    unix.SYS_PERF_EVENT_OPEN,
		"pivot_root":         unix.SYS_PIVOT_ROOT,
		"prctl":              unix.SYS_PRCTL,
		"prlimit64":          unix.SYS_PRLIMIT64,
		"quotactl":           unix.SYS_QUOTACTL,
		"quotactl_fd":        unix.SYS_QUOTACTL_FD,
		"reboot":             unix.SYS_REBOOT,
		"request_key":        unix.SYS_REQUEST_KEY,
		"sched_setaffinity":  unix.SYS_SCHED_SETAFFINITY,
		"sched_setattr":      unix.SYS_SCHED_SETATTR,
		"sched_setparam":     unix.SYS_SCHED_SETPARAM,
		"sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER,
		"seccomp":            unix.SYS_SECCOMP,
		"sendmmsg":           unix.SYS_SENDMMSG,
		"sendmsg":            unix.SYS_SENDMSG,
		"sendto":             unix.SYS_SENDTO,
		"setns":              unix.SYS_SETNS,
		"setpriority":        unix.SYS_SETPRIORITY,
		"setsockopt":         unix.SYS_SETSOCKOPT,
		"setgid":             unix.SYS_SETGID,
		"setregid":           unix.SYS_SETREGID,
		"setresgid":          unix.SYS_SETRESGID,
		"setresuid":          unix.SYS_SETRESUID,
		"setreuid":           unix.SYS_SETREUID,
		"setuid":             unix.SYS_SETUID,
		"settimeofday":       unix.SYS_SETTIMEOFDAY,
		"socket":             unix.SYS_SOCKET,
		"socketpair":         unix.SYS_SOCKETPAIR,
		"swapoff":            unix.SYS_SWAPOFF,
		"swapon":             unix.SYS_SWAPON,
		"syslog":             unix.SYS_SYSLOG,
		"truncate":           unix.SYS_TRUNCATE,
		"umount2":            unix.SYS_UMOUNT2,
		"userfaultfd":        unix.SYS_USERFAULTFD,
		"vhangup":            unix.SYS_VHANGUP,
	}
	known := 0
	for _, s := range sysnrTable {
		if _, ok := sysnrOf("arm64", s.name); ok {
			known++
		}
	}
	if known != len(want) {
		t.Errorf("%d numbers, want %d", known, len(want))
	}
	for name, nr := range want {
		if got, ok := sysnrOf("arm64", name); !ok || int(got) != nr {
			t.Errorf("%s is %d, want %d", name, got, nr)
		}
	}
}
