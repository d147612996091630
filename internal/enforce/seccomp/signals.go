package seccomp

// SignalMode says which signals of a command the broker answers.
type SignalMode int

const (
	// SignalsKernel leaves all signals to the kernel.
	SignalsKernel SignalMode = iota
	// SignalsExist is for a Landlock that keeps signals inside. It also stops signal 0, which
	// delivers nothing and which programs send to learn whether a lock file's owner lives. The
	// broker answers signal 0 as the kernel does outside.
	SignalsExist
	// SignalsAll is for a Landlock without a scope for signals. The broker sends them, and only
	// to the session's own processes. The kernel answers signal 0 itself, correctly.
	SignalsAll
)

// signalRules hand calls that signal a process to the broker. The kernel takes signals and
// process numbers as int. SignalsExist leaves out the sigqueue calls: they are not used for
// lock files, but keepers of nested sessions use them to test their own domain.
func signalRules(mode SignalMode) []rule {
	const (
		exists = "programs ask by signal 0 whether a lock file's owner lives; the answer must be the same as outside"
		all    = "this kernel's Landlock has no scope for signals; they may only reach the session's own processes"
	)
	zero := func(call string, sig uint8, more ...test) rule {
		tests := append([]test{{arg: sig}}, more...)
		return rule{
			calls:   []string{call},
			clauses: []clause{{tests, actNotify}},
			when:    "the signal is 0",
			why:     exists,
		}
	}
	real := func(sig uint8, calls ...string) rule {
		return rule{
			calls:   calls,
			clauses: []clause{{[]test{{arg: sig, not: true}}, actNotify}},
			when:    "the signal is not 0",
			why:     all,
		}
	}
	switch mode {
	case SignalsExist:
		const everybody = 0xffffffff // -1: there is always some process
		return []rule{
			zero("kill", 1, test{arg: 0, not: true}, test{arg: 0, not: true, is: everybody}),
			zero("tkill", 1), zero("tgkill", 2),
			zero("pidfd_send_signal", 1, test{arg: 0, mask: 1 << 31}), // PIDFD_SELF is negative
		}
	case SignalsAll:
		return []rule{
			real(1, "kill", "tkill", "rt_sigqueueinfo", "pidfd_send_signal"),
			real(2, "tgkill", "rt_tgsigqueueinfo"),
		}
	}
	return nil
}

// fcntlRule refuses leases, and what makes an open file signal other processes than the caller.
//
// With O_ASYNC a file signals its owner when there is something to read. A terminal without an
// owner signals its foreground group. F_SETSIG chooses the signal, even SIGKILL. For a group,
// Landlock checks only the first process (CVE-2026-72183: before Linux 6.12.101, 6.18.40 and
// 7.1.5), and before ABI 6 it checks nothing. F_SETOWN_EX has the owner in memory, where a
// filter can't look.
func fcntlRule(mode SignalMode) rule {
	const (
		setOwn, setFlags, setSig, setOwnEx = 8, 4, 10, 15
		negative, async                    = 1 << 31, 0o20000
	)
	clauses := []clause{
		{[]test{{arg: 1, is: 1024}}, RefuseEACCES}, // F_SETLEASE
		{[]test{{arg: 1, is: 1040}}, RefuseEACCES}, // F_SETDELEG, since Linux 6.19
		{[]test{{arg: 1, is: setOwn}, {arg: 2, mask: negative, is: negative}}, RefuseEPERM},
		{[]test{{arg: 1, is: setOwnEx}}, RefuseEPERM},
		{[]test{{arg: 1, is: setSig}, {arg: 2, not: true}}, RefuseEPERM},
		{[]test{{arg: 1, is: setFlags}, {arg: 2, mask: async, is: async}}, RefuseEPERM},
	}
	if mode == SignalsAll {
		clauses = append(clauses, clause{[]test{{arg: 1, is: setOwn}, {arg: 2, not: true}}, actNotify})
	}
	return rule{
		calls: []string{"fcntl"}, clauses: clauses,
		when: "F_SETLEASE, F_SETDELEG, F_SETOWN to a group, F_SETOWN_EX, F_SETSIG or O_ASYNC",
		why: "opening a leased file, or changing a leased directory, can block for 45 seconds each time, " +
			"and a lease needs only read access. The others make a file signal processes outside",
	}
}

// ioctlRule keeps the command from typing into the caller's terminal and, like fcntlRule, from
// making files signal others. It goes by the request alone, since the arguments are in memory.
// FIOASYNC, which turns O_ASYNC on, pretends to succeed: nginx gives up if it fails, but does
// not need the signals.
//
// Keys of encrypted files (fscrypt) belong to the file system and serve all programs of the
// user. Adding or removing one needs only a directory open for reading. So do subvolumes and
// snapshots of btrfs(5) or bcachefs, which neither Landlock nor a read-only mount stops. A
// snapshot shows denied files under another name, in any directory of the user. OCFS2 copies a
// file by its path.
func ioctlRule() rule {
	var clauses []clause
	for _, request := range []uint32{
		0x5412, 0x541c, 0x5423, 0x8901, 0x8902, // TIOCSTI, TIOCLINUX, TIOCSETD, FIOSETOWN, SIOCSPGRP
		0xc0506617, 0xc0406618, 0xc0406619, // FS_IOC_ADD_ENCRYPTION_KEY, …REMOVE_ENCRYPTION_KEY, …_ALL_USERS
		0x50009401, 0x50009417, // BTRFS_IOC_SNAP_CREATE, …_V2
		0x5000940e, 0x50009418, // BTRFS_IOC_SUBVOL_CREATE, …_V2
		0x5000940f, 0x5000943f, // BTRFS_IOC_SNAP_DESTROY, …_V2
		0x4020bc10, 0x4030bc1d, // BCH_IOCTL_SUBVOLUME_CREATE, …_v2
		0x4020bc11, 0x4030bc1e, // BCH_IOCTL_SUBVOLUME_DESTROY, …_v2
		0x40186f04, // OCFS2_IOC_REFLINK
	} {
		clauses = append(clauses, clause{[]test{{arg: 1, is: request}}, RefuseEPERM})
	}
	clauses = append(clauses, clause{[]test{{arg: 1, is: 0x5452}}, pretendSuccess}) // FIOASYNC
	return rule{
		calls: []string{"ioctl"}, clauses: clauses,
		when: "the request is TIOCSTI, TIOCLINUX, TIOCSETD, FIOSETOWN, SIOCSPGRP or FIOASYNC, " +
			"or adds or removes keys of encrypted files, or subvolumes and snapshots, or is OCFS2_IOC_REFLINK",
		why: "they type into the caller's terminal, replace its line discipline, " +
			"make a file signal processes outside, lock the user's other programs out of files, " +
			"or show denied files under other names",
	}
}
