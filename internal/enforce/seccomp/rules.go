package seccomp

import (
	"slices"

	"github.com/zsbx/zsbx/internal/resolve"
)

// Options says what a filter is for.
type Options struct {
	Arch         string // of the machine, as Go spells it
	UID, GID     uint32 // of the command
	Capabilities uint64 // of this process, as bits (capabilities(7))

	Net      resolve.ResolvedNet
	Peers    bool       // the broker answers connect(2) and listen(2)
	Names    bool       // the broker asks name servers for the command
	Own      bool       // without network, the broker gives the command sockets in a network of its own
	Signals  SignalMode // which signals the broker answers
	Truncate bool       // Landlock handles truncate(2)
	IoctlDev bool       // Landlock handles ioctl(2) on devices
	UserNS   bool       // the command lives in a user namespace
	Pids     bool       // it lives in a PID namespace, with its keeper as number 1
	Record   bool       // the broker sees all calls that may be refused, and answers them
}

// Compile returns the filter, or nil if the machine's system calls are unknown.
//
// The filter refuses with an error, so that programs can fall back. Only a system call of
// another architecture kills the process, since its number means something else there.
func Compile(q Options) *Filter { return newFilter(q.Arch, q.rules()) }

// rules returns the rules of the filter. They name each call once, so their order does not
// matter.
func (q *Options) rules() []rule {
	all := slices.Concat(
		commonRules(),
		[]rule{ioctlRule(), fcntlRule(q.Signals)},
		signalRules(q.Signals),
		processRules(q.Signals != SignalsKernel, q.Pids),
	)
	if q.UserNS {
		all = append(all, ownerRules(q.UID, q.GID)...)
		all = append(all, identityRules(q.UID, q.GID)...)
	}
	if !q.IoctlDev {
		all = append(all, openRules(q.Truncate)...)
	}
	all = append(all, q.networkRules()...)
	if q.Peers || q.Signals != SignalsKernel || q.Record {
		all = append(all, listenerRule())
	}
	if q.Record {
		return handOver(all)
	}
	return all
}

// commonRules refuse calls that no build needs or that would undo other rules.
func commonRules() []rule {
	return []rule{
		refuse(RefuseENOSYS, "io_uring makes system calls that no filter sees",
			"io_uring_setup", "io_uring_enter", "io_uring_register"),
		refuse(RefuseENOSYS, "clone3(2) can start a process in another cgroup; C libraries fall back to clone(2)",
			"clone3"),
		refuse(RefuseEPERM,
			"they run programs in the kernel, use performance counters, or let a program handle page faults",
			"bpf", "perf_event_open", "userfaultfd"),
		refuse(RefuseEPERM, "keyrings are shared with the user's other programs",
			"add_key", "keyctl", "request_key"),
		refuse(RefuseEACCES, "Landlock refuses to open POSIX message queues, but does not check their removal",
			"mq_unlink"),
		refuse(RefuseEPERM, "mounts change what paths mean; Landlock refuses them too",
			"mount", "umount2", "pivot_root", "open_tree", "open_tree_attr", "move_mount",
			"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
		refuse(RefuseEPERM, "the owner of a container's user namespace has all capabilities in it, "+
			"and zsbx's mounts are missing there", "setns"),
		refuse(RefuseEPERM, "files opened by handle have no path to check; fanotify watches whole file systems",
			"open_by_handle_at", "fanotify_init"),
		refuse(RefuseEPERM, "administration of the machine",
			"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
			"quotactl", "quotactl_fd", "swapon", "swapoff", "reboot", "settimeofday",
			"clock_settime", "acct", "syslog", "vhangup", "iopl", "ioperm"),
		namespaceRule("unshare"), namespaceRule("clone"),
	}
}

// namespaceRule refuses new user namespaces. In one, a process has root's access to parts of
// the kernel where many bugs are. Containers would not work anyway: they also need mounts,
// which Landlock refuses, and writes to /proc/self/uid_map.
func namespaceRule(call string) rule {
	const newUser = 0x10000000 // CLONE_NEWUSER
	return rule{
		calls:   []string{call},
		clauses: []clause{{[]test{{arg: 0, mask: newUser, is: newUser}}, RefuseEPERM}},
		when:    "CLONE_NEWUSER",
		why:     "a user namespace opens parts of the kernel that only root can use otherwise",
	}
}

// processRules protect the limits and priorities of other processes, which no Landlock right
// covers: a CPU limit of one second kills. A filter can't tell a child from a stranger, so a
// process may change only itself.
//
// pthread_setaffinity_np(3) and similar functions name a thread by number. A broker allows the
// caller's own threads; without a broker the number must be 0. The broker does not allow
// children, since a child can end after the check, and its number go to a process outside before
// the call.
func processRules(broker, pids bool) []rule {
	const why = "it could starve or kill processes outside; a filter can't tell them from the command's own"
	p := processesRefused(broker, pids)
	who := p.number
	who.arg = 1 // after the kind of number
	rules := []rule{
		{
			calls: []string{"prlimit64"},
			clauses: []clause{
				{[]test{p.number, {arg: 2, not: true}}, RefuseEPERM},
				{[]test{p.number, {arg: 2, high: true, not: true}}, RefuseEPERM},
			},
			when: "it sets a limit and " + p.when,
		},
		{
			calls:   []string{"sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"},
			clauses: []clause{{[]test{p.number}, p.schedule}},
			when:    p.when,
		},
		{
			calls:   []string{"move_pages", "migrate_pages"},
			clauses: []clause{{[]test{{arg: 0, not: true}}, RefuseEPERM}},
			when:    numberGiven,
		},
		{
			calls: []string{"setpriority"},
			clauses: []clause{
				{[]test{{arg: 0, not: true}}, RefuseEPERM},
				{[]test{who}, p.schedule},
			},
			when: p.priority,
		},
		{
			calls: []string{"ioprio_set"},
			clauses: []clause{
				{[]test{{arg: 0, not: true, is: 1}}, RefuseEPERM},
				{[]test{{arg: 1, not: true}}, RefuseEPERM},
			},
			when: "it is not IOPRIO_WHO_PROCESS with process number 0",
		},
	}
	for i := range rules {
		rules[i].why = why
	}
	return rules
}

const numberGiven = "the process number is not 0"

// refusedProcesses says for which processes a call is refused.
type refusedProcesses struct {
	number   test   // of the process
	when     string // the test in words
	priority string // the test of setpriority(2) in words
	schedule uint32 // the answer to a call that schedules such a process
}

// processesRefused returns the processes whose limits and priorities can't be changed. In a PID
// namespace of the session all numbers are those of its processes, except the keeper's.
func processesRefused(broker, pids bool) refusedProcesses {
	if pids {
		const keeper = 1
		const when = "the process number is the keeper's"
		return refusedProcesses{
			number:   test{is: keeper},
			when:     when,
			priority: "it is not PRIO_PROCESS, or " + when,
			schedule: RefuseEPERM,
		}
	}
	p := refusedProcesses{
		number:   test{not: true},
		when:     numberGiven,
		priority: "it is not PRIO_PROCESS with process number 0",
		schedule: RefuseEPERM,
	}
	if broker {
		p.schedule = actNotify
	}
	return p
}

// ownerRules make chown(2) in a user namespace fail as outside, with EPERM. The kernel would
// return EINVAL for other users and groups, and programs such as fakeroot continue only after
// EPERM.
func ownerRules(uid, gid uint32) []rule {
	const keep = 0xffffffff
	to := func(user uint8, calls ...string) rule {
		return rule{
			calls: calls,
			clauses: []clause{
				{[]test{{arg: user, not: true, is: uid}, {arg: user, not: true, is: keep}}, RefuseEPERM},
				{[]test{{arg: user + 1, not: true, is: gid}, {arg: user + 1, not: true, is: keep}}, RefuseEPERM},
			},
			when: "to another user or group",
			why:  "in a user namespace the kernel would return EINVAL, which programs take for a mistake in the call",
		}
	}
	return []rule{to(1, "chown", "lchown", "fchown"), to(2, "fchownat")}
}

// identityRules make setuid(2) and the like in a user namespace fail as outside, with EPERM. The
// kernel would return EINVAL for users and groups that are not in the namespace, and programs
// that want to give up root continue only after EPERM. The command has one user and one group,
// and no capabilities, so it can only set these.
func identityRules(uid, gid uint32) []rule {
	const keep = 0xffffffff // setuid(2) and setgid(2) return EINVAL for it
	to := func(id uint32, args uint8, call string) rule {
		r := rule{
			calls: []string{call}, when: "to another user or group", outside: true,
			why: "in a user namespace the kernel would return EINVAL, which programs take for a mistake in the call",
		}
		for arg := range args {
			other := []test{{arg: arg, not: true, is: id}, {arg: arg, not: true, is: keep}}
			r.clauses = append(r.clauses, clause{other, RefuseEPERM})
		}
		return r
	}
	return []rule{
		to(uid, 1, "setuid"), to(uid, 2, "setreuid"), to(uid, 3, "setresuid"),
		to(gid, 1, "setgid"), to(gid, 2, "setregid"), to(gid, 3, "setresgid"),
	}
}

// openRules replace two rights that older versions of Landlock lack. Before ABI 5 Landlock does
// not check ioctl(2) on devices. Opening a device with access mode 3, for neither reading nor
// writing, needs no other right, and ioctl(2) alone can read disks, cameras and microphones.
// Before ABI 3 Landlock does not check truncate(2) and O_RDONLY with O_TRUNC, which empty a
// file. ftruncate(2) needs a descriptor that is open for writing, and that open was checked.
func openRules(truncate bool) []rule {
	const (
		trunc   = 0o1000 // O_TRUNC
		accMode = 0o3    // O_RDONLY is 0

		unchecked = "; this kernel's Landlock doesn't check that"
	)
	when := "the access mode is 3"
	why := "it opens devices for ioctl(2)"
	if !truncate {
		when += ", or O_RDONLY with O_TRUNC"
		why += ", or empties a file"
	}
	open := func(flags uint8) []clause {
		out := []clause{{[]test{{arg: flags, mask: accMode, is: accMode}}, RefuseEACCES}}
		if !truncate {
			out = append(out, clause{[]test{{arg: flags, mask: trunc | accMode, is: trunc}}, RefuseEACCES})
		}
		return out
	}
	rules := []rule{
		refuse(RefuseENOSYS, "its flags are in memory, where a filter can't look; programs fall back to openat(2)",
			"openat2"),
		{calls: []string{"open"}, clauses: open(1), when: when, why: why + unchecked},
		{calls: []string{"openat"}, clauses: open(2), when: when, why: why + unchecked},
	}
	if !truncate {
		empties := "it empties a file without the right to write it" + unchecked
		rules = append(rules, refuse(RefuseEACCES, empties, "truncate"))
	}
	return rules
}
