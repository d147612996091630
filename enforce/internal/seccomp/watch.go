package seccomp

import (
	"slices"
	"strings"
)

// watched are the calls that Landlock, mounts or the broker may refuse, beside those
// that the filter decides about, and which of their arguments are certain to be
// allowed. What no means refuses is not in it: stat(2), access(2), readlink(2),
// chdir(2).
func watched() map[string][]clause {
	var terminal []clause // TCGETS TIOCGPGRP TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
	for _, request := range []uint32{0x5401, 0x540f, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451} {
		terminal = append(terminal, clause{[]test{{arg: 1, is: request}}, ActAllow})
	}
	var other []clause // of ptrace(2), all but PTRACE_ATTACH and PTRACE_SEIZE is about processes that are attached to
	other = append(other, clause{[]test{{arg: 0, not: true, is: 16}, {arg: 0, not: true, is: 0x4206}}, ActAllow})
	calls := map[string][]clause{"ioctl": terminal, "ptrace": other, "kill": {{[]test{{arg: 0}}, ActAllow}}} // its own group
	for _, name := range []string{"open", "openat", "openat2", "creat", "execve", "execveat", "mkdir", "mkdirat", "mknod", "mknodat", "unlink", "unlinkat", "rmdir",
		"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "truncate", "chmod", "fchmod", "fchmodat", "fchmodat2",
		"chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr",
		"removexattr", "lremovexattr", "fremovexattr", "bind", "connect", "tkill", "tgkill", "pidfd_send_signal",
		"rt_sigqueueinfo", "rt_tgsigqueueinfo", "process_vm_readv", "process_vm_writev", "pidfd_getfd"} {
		calls[name] = nil
	}
	return calls
}

// watch has the supervisor see each call that may be refused. It gives the answers
// of the rules itself, but for those after which programs fall back without a word
// (ENOSYS), and lets go on what the rules allow.
func watch(rules []rule) []rule {
	all := watched()
	var out []rule
	for _, r := range rules {
		for _, name := range r.calls {
			one := rule{calls: []string{name}, clauses: slices.Clone(r.clauses), when: r.when, why: r.why}
			for i, c := range one.clauses {
				if c.answer&0xffff0000 == ActErrno && c.answer != pretendSuccess && c.answer != RefuseENOSYS {
					one.clauses[i].answer = actNotify
				}
			}
			if more, ok := all[name]; ok {
				one.clauses = append(append(one.clauses, more...), clause{answer: actNotify})
				delete(all, name)
			}
			out = append(out, one)
		}
	}
	for name, more := range all {
		out = append(out, rule{calls: []string{name}, clauses: append(more, clause{answer: actNotify})})
	}
	slices.SortFunc(out, func(a, b rule) int { return strings.Compare(a.calls[0], b.calls[0]) })
	return out
}

// Decide is what the filter does about a call, by its number: it hands it over, refuses
// it with an error number, or neither.
func (f *Filter) Decide(nr int32, args [6]uint64) (handsOver bool, errno int) {
	got, err := machine(f.Program, seccompData(auditArch(f.Arch), uint32(nr), args[:]...))
	if err == nil && got&0xffff0000 == ActErrno && got != pretendSuccess {
		errno = int(got & 0xffff)
	}
	return err == nil && got == actNotify, errno
}

// Names are those of the system calls of the filter's machine that a filter may be
// about, by their numbers.
func (f *Filter) Names() map[int32]string {
	names := make(map[int32]string)
	for _, s := range sysnrTable {
		if nr, ok := sysnrOf(f.Arch, s.name); ok {
			names[int32(nr)] = s.name
		}
	}
	return names
}
