package seccomp

import (
	"slices"
	"strings"
)

// sysnr has a system call's name and its number on each machine, or -1 if the machine lacks it.
// The numbers are part of the kernel's stable interface. Tests compare them with
// golang.org/x/sys/unix, which has them only on Linux, while plans are made and tested on every
// system.
type sysnr struct {
	name         string
	amd64, arm64 int
}

// LastSyscall is the last system call that was reviewed for the rules: rseq_slice_yield, on
// both machines. Later ones fail with ENOSYS, as on an older kernel.
const LastSyscall = 471

// sysnrTable has the system calls that a filter decides about, sorted by name.
var sysnrTable = [...]sysnr{
	{"acct", 163, 89}, {"add_key", 248, 217}, {"bind", 49, 200}, {"bpf", 321, 280}, {"chmod", 90, -1},
	{"chown", 92, -1}, {"clock_settime", 227, 112}, {"clone", 56, 220}, {"clone3", 435, 435}, {"connect", 42, 203},
	{"creat", 85, -1}, {"delete_module", 176, 106}, {"execve", 59, 221}, {"execveat", 322, 281},
	{"exit_group", 231, 94},
	{"fanotify_init", 300, 262}, {"fchmod", 91, 52}, {"fchmodat", 268, 53}, {"fchmodat2", 452, 452},
	{"fchown", 93, 55}, {"fchownat", 260, 54}, {"fcntl", 72, 25}, {"finit_module", 313, 273},
	{"fremovexattr", 199, 16}, {"fsconfig", 431, 431}, {"fsetxattr", 190, 7}, {"fsmount", 432, 432},
	{"fsopen", 430, 430}, {"fspick", 433, 433}, {"futimesat", 261, -1}, {"init_module", 175, 105},
	{"io_uring_enter", 426, 426}, {"io_uring_register", 427, 427}, {"io_uring_setup", 425, 425}, {"ioctl", 16, 29},
	{"ioperm", 173, -1}, {"iopl", 172, -1}, {"ioprio_set", 251, 30}, {"kexec_file_load", 320, 294},
	{"kexec_load", 246, 104}, {"keyctl", 250, 219}, {"kill", 62, 129}, {"lchown", 94, -1}, {"link", 86, -1},
	{"linkat", 265, 37}, {"listen", 50, 201}, {"lremovexattr", 198, 15}, {"lsetxattr", 189, 6},
	{"migrate_pages", 256, 238}, {"mkdir", 83, -1}, {"mkdirat", 258, 34}, {"mknod", 133, -1}, {"mknodat", 259, 33},
	{"mount", 165, 40}, {"mount_setattr", 442, 442}, {"move_mount", 429, 429}, {"move_pages", 279, 239},
	{"mq_unlink", 241, 181}, {"open", 2, -1}, {"open_by_handle_at", 304, 265}, {"open_tree", 428, 428},
	{"open_tree_attr", 467, 467}, {"openat", 257, 56}, {"openat2", 437, 437}, {"perf_event_open", 298, 241},
	{"pidfd_getfd", 438, 438}, {"pidfd_send_signal", 424, 424}, {"pivot_root", 155, 41}, {"prctl", 157, 167},
	{"prlimit64", 302, 261}, {"process_vm_readv", 310, 270}, {"process_vm_writev", 311, 271}, {"ptrace", 101, 117},
	{"quotactl", 179, 60}, {"quotactl_fd", 443, 443}, {"reboot", 169, 142}, {"removexattr", 197, 14},
	{"rename", 82, -1}, {"renameat", 264, 38}, {"renameat2", 316, 276}, {"request_key", 249, 218},
	{"rmdir", 84, -1}, {"rt_sigqueueinfo", 129, 138}, {"rt_tgsigqueueinfo", 297, 240},
	{"sched_setaffinity", 203, 122}, {"sched_setattr", 314, 274}, {"sched_setparam", 142, 118},
	{"sched_setscheduler", 144, 119}, {"seccomp", 317, 277}, {"sendmmsg", 307, 269}, {"sendmsg", 46, 211},
	{"sendto", 44, 206}, {"setgid", 106, 144}, {"setns", 308, 268}, {"setpriority", 141, 140},
	{"setregid", 114, 143}, {"setresgid", 119, 149}, {"setresuid", 117, 147}, {"setreuid", 113, 145},
	{"setsockopt", 54, 208}, {"settimeofday", 164, 170}, {"setuid", 105, 146}, {"setxattr", 188, 5},
	{"socket", 41, 198}, {"socketpair", 53, 199}, {"swapoff", 168, 225}, {"swapon", 167, 224}, {"symlink", 88, -1},
	{"symlinkat", 266, 36}, {"syslog", 103, 116}, {"tgkill", 234, 131}, {"tkill", 200, 130}, {"truncate", 76, 45},
	{"umount2", 166, 39}, {"unlink", 87, -1}, {"unlinkat", 263, 35}, {"unshare", 272, 97},
	{"userfaultfd", 323, 282}, {"utime", 132, -1}, {"utimensat", 280, 88}, {"utimes", 235, -1},
	{"vhangup", 153, 58},
}

// sysnrOf returns the number of a system call on a machine, if it has one.
func sysnrOf(arch, name string) (uint32, bool) {
	compare := func(s sysnr, name string) int { return strings.Compare(s.name, name) }
	i, ok := slices.BinarySearchFunc(sysnrTable[:], name, compare)
	if !ok {
		return 0, false
	}
	n := -1
	switch arch {
	case "amd64":
		n = sysnrTable[i].amd64
	case "arm64":
		n = sysnrTable[i].arm64
	}
	return uint32(n), n >= 0
}

// auditArch returns a machine's AUDIT_ARCH_* number (linux/audit.h), which filters see, or 0 if
// the machine is unknown.
func auditArch(arch string) uint32 {
	switch arch {
	case "amd64":
		return 0xc000003e
	case "arm64":
		return 0xc00000b7
	}
	return 0
}
