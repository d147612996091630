package seccomp

// SignalMode says what of the signals of a command its supervisor answers.
type SignalMode int

const (
	// SignalsKernel: the kernel decides alone.
	SignalsKernel SignalMode = iota
	// SignalsExist: Landlock keeps signals inside, and signal 0 with them,
	// which delivers nothing and by which lock files ask whether their owner
	// lives. The supervisor answers that as the kernel does outside.
	SignalsExist
	// SignalsAll: this kernel's Landlock has no scope for signals. The
	// supervisor sends them, and only to the session's own processes. Signal 0
	// the kernel answers truly by itself.
	SignalsAll
)

// signalRules hand calls by which a process is signalled to the supervisor. The
// kernel takes the signal and the numbers of processes as int. Without the sigqueue calls:
// no lock file asks by them, and the keepers of sessions inside of this one
// do, whether their own domain holds.
func signalRules(mode SignalMode) []rule {
	const (
		exists = "lock files name their owner by number: whether it lives has to be answered the same inside as outside"
		all    = "this kernel's Landlock has no scope for signals; they may only reach the session's own processes"
	)
	zero := func(call string, sig uint8, more ...test) rule {
		return rule{calls: []string{call}, clauses: []clause{{append([]test{{arg: sig}}, more...), actNotify}}, when: "the signal is 0", why: exists}
	}
	real := func(sig uint8, calls ...string) rule {
		return rule{calls: calls, clauses: []clause{{[]test{{arg: sig, not: true}}, actNotify}}, when: "the signal is not 0", why: all}
	}
	switch mode {
	case SignalsExist:
		const everybody = 0xffffffff // -1: there is always somebody
		return []rule{
			zero("kill", 1, test{arg: 0, not: true}, test{arg: 0, not: true, is: everybody}),
			zero("tkill", 1), zero("tgkill", 2),
			zero("pidfd_send_signal", 1, test{arg: 0, mask: 1 << 31}), // a negative one is the caller's own: PIDFD_SELF
		}
	case SignalsAll:
		return []rule{
			real(1, "kill", "tkill", "rt_sigqueueinfo", "pidfd_send_signal"),
			real(2, "tgkill", "rt_tgsigqueueinfo"),
		}
	}
	return nil
}

// fcntlRule refuses what makes an open file send signals to others than the
// caller, and leases.
//
// A file signals its owner when there is something to read (O_ASYNC). On a terminal
// that is its foreground group, unless there is an owner already; F_SETSIG
// says which signal, SIGKILL included. Landlock asks about groups by their
// first process only (CVE-2026-72183: before Linux 6.12.101, 6.18.40 and
// 7.1.5), and in no way before its ABI 6. F_SETOWN_EX names the owner in memory,
// where a filter can't look.
func fcntlRule(mode SignalMode) rule {
	const (
		setOwn, setFlags, setSig, setOwnEx = 8, 4, 10, 15
		negative, async                    = 1 << 31, 0o20000
	)
	clauses := []clause{
		{[]test{{arg: 1, is: 1024}}, RefuseEACCES}, // F_SETLEASE
		{[]test{{arg: 1, is: 1040}}, RefuseEACCES}, // F_SETDELEG, from Linux 6.19 on
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
		why: "whoever opens a leased file, or changes a directory that is, waits for the holder, up to 45 seconds each time; to read it is enough. " +
			"The others have a file signal processes outside",
	}
}

// ioctlRule keeps the caller's terminal from being typed into, and files from
// signalling others, as fcntlRule does: the arguments lie in memory. nginx turns O_ASYNC on
// (FIOASYNC) and gives up where it can't, but does without the signals.
//
// Keys of encrypted files (fscrypt) are the file system's, for all programs of the
// user. To add one or to take it away needs a directory that is open to read. So does a
// subvolume of btrfs(5) or bcachefs, about which neither Landlock nor a mount is asked: a snapshot
// shows what is denied under another name, and in any directory of the user's. OCFS2 copies
// a file by its path.
func ioctlRule() rule {
	var clauses []clause
	for _, request := range []uint32{
		0x5412, 0x541c, 0x5423, 0x8901, 0x8902, // TIOCSTI, TIOCLINUX, TIOCSETD, FIOSETOWN, SIOCSPGRP
		0xc0506617, 0xc0406618, 0xc0406619, // FS_IOC_ADD_ENCRYPTION_KEY, FS_IOC_REMOVE_ENCRYPTION_KEY, and for ALL_USERS
		0x50009401, 0x50009417, 0x5000940e, 0x50009418, 0x5000940f, 0x5000943f, // BTRFS_IOC_SNAP_CREATE, SUBVOL_CREATE, SNAP_DESTROY, each with its V2
		0x4020bc10, 0x4030bc1d, 0x4020bc11, 0x4030bc1e, // BCH_IOCTL_SUBVOLUME_CREATE, SUBVOLUME_DESTROY, each with its v2
		0x40186f04, // OCFS2_IOC_REFLINK
	} {
		clauses = append(clauses, clause{[]test{{arg: 1, is: request}}, RefuseEPERM})
	}
	clauses = append(clauses, clause{[]test{{arg: 1, is: 0x5452}}, pretendSuccess}) // FIOASYNC
	return rule{
		calls: []string{"ioctl"}, clauses: clauses,
		when: "the request is TIOCSTI, TIOCLINUX, TIOCSETD, FIOSETOWN, SIOCSPGRP or FIOASYNC, or adds or removes keys of encrypted files, or subvolumes and snapshots, or is OCFS2_IOC_REFLINK",
		why: "they type into the caller's terminal, or put another line discipline between it and its user, " +
			"or have a file signal processes outside, or take files away from the user's other programs, or show denied files under other names",
	}
}
