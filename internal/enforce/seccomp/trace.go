package seccomp

// recordedCalls returns the calls that Landlock, mounts or the broker may refuse, besides those
// that the filter decides about, and the end of a process that failed. The clauses are for
// arguments that are always allowed. Calls that nothing refuses are left out: stat(2), access(2),
// readlink(2), chdir(2).
func recordedCalls() map[string][]clause {
	all := make(map[string][]clause)
	for _, name := range []string{
		"open", "openat", "openat2", "creat", "execve", "execveat", "mkdir", "mkdirat", "mknod", "mknodat",
		"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat", "symlink",
		"symlinkat", "truncate", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown",
		"fchownat", "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr",
		"removexattr", "lremovexattr", "fremovexattr", "bind", "connect", "tkill", "tgkill",
		"pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "process_vm_readv", "process_vm_writev",
		"pidfd_getfd",
	} {
		all[name] = nil
	}
	for _, request := range []uint32{
		0x5401, // TCGETS
		0x540f, // TIOCGPGRP
		0x5413, // TIOCGWINSZ
		0x541b, // FIONREAD
		0x5421, // FIONBIO
		0x5450, // FIONCLEX
		0x5451, // FIOCLEX
	} {
		all["ioctl"] = append(all["ioctl"], clause{[]test{{arg: 1, is: request}}, ActAllow})
	}
	// All requests except PTRACE_ATTACH and PTRACE_SEIZE need a process that is already
	// attached.
	all["ptrace"] = []clause{{[]test{{arg: 0, not: true, is: 16}, {arg: 0, not: true, is: 0x4206}}, ActAllow}}
	all["kill"] = []clause{{[]test{{arg: 0}}, ActAllow}}       // the caller's own group
	all["exit_group"] = []clause{{[]test{{arg: 0}}, ActAllow}} // with 0, a process did not fail
	return all
}

// handOver returns rules that hand each call that may be refused to the broker. The broker then
// gives the rules' answers itself. Refusals with ENOSYS stay in the filter, since programs
// silently fall back after them.
func handOver(rules []rule) (out []rule) {
	clauses := make(map[string][]clause) // by call
	for _, r := range rules {
		for _, name := range r.calls {
			for _, c := range r.clauses {
				if c.answer&0xffff0000 == ActErrno && c.answer != pretendSuccess && c.answer != RefuseENOSYS {
					c.answer = actNotify
				}
				clauses[name] = append(clauses[name], c)
			}
		}
	}
	for name, certain := range recordedCalls() {
		clauses[name] = append(append(clauses[name], certain...), clause{answer: actNotify})
	}
	for _, s := range sysnrTable {
		if c := clauses[s.name]; c != nil {
			out = append(out, rule{calls: []string{s.name}, clauses: c})
		}
	}
	return out
}

// Decide reports whether the filter hands a call over, or else the error number with which it
// refuses it. Both are zero if it allows the call.
func (f *Filter) Decide(call string, args [6]uint64) (handsOver bool, errno int) {
	got := f.decide(call, args)
	if got&0xffff0000 == ActErrno && got != pretendSuccess {
		errno = int(got & 0xffff)
	}
	return got == actNotify, errno
}

// Names returns the names of all system calls in the table that the filter's machine has, by
// number.
func (f *Filter) Names() map[int32]string {
	names := make(map[int32]string)
	for _, s := range sysnrTable {
		if nr, ok := sysnrOf(f.Arch, s.name); ok {
			names[int32(nr)] = s.name
		}
	}
	return names
}
