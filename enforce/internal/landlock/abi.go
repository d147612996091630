package landlock

import "strings"

// The Landlock rights on files, as in linux/landlock.h (see the kernel's
// Documentation/userspace-api/landlock.rst). They are repeated here so that a
// plan for Linux can be made and tested on every system.
const (
	FSExecute uint64 = 1 << iota
	FSWriteFile
	FSReadFile
	FSReadDir
	FSRemoveDir
	FSRemoveFile
	FSMakeChar
	FSMakeDir
	FSMakeReg
	FSMakeSock
	FSMakeFifo
	FSMakeBlock
	FSMakeSym
	FSRefer
	FSTruncate
	FSIoctlDev
	FSResolveUnix
)

// The Landlock rights on the network.
const (
	NetBindTCP uint64 = 1 << iota
	NetConnectTCP
	NetBindUDP
	NetConnectSendUDP
)

// The Landlock scopes.
const (
	ScopeAbstractUnix uint64 = 1 << iota
	ScopeSignal
)

// Flags of landlock_restrict_self(2). Without RestrictLogNewExecOn the kernel logs
// no denial of a program that was executed after it, and so none of a command's.
const (
	RestrictLogSameExecOff uint32 = 1 << iota
	RestrictLogNewExecOn
	RestrictLogSubdomainsOff
	RestrictTSync
	RestrictNoNewPrivs
)

// ABI is what one version of Landlock knows.
type ABI struct {
	Linux    string // the first kernel that has it
	FS       uint64 // rights on files that a ruleset may handle
	Net      uint64
	Scoped   uint64
	AttrSize uintptr // bytes of struct landlock_ruleset_attr
	Restrict uint32  // flags of landlock_restrict_self(2)
}

// MaxABI is the newest version of Landlock that this package knows. A kernel
// with a newer one is used as if it had this.
const MaxABI = 11

// AbiTable says what each version knows; entry 0 is no Landlock.
func AbiTable() [MaxABI + 1]ABI {
	var t [MaxABI + 1]ABI
	fs := uint64(FSMakeSym<<1 - 1)
	t[1] = ABI{Linux: "5.13", FS: fs, AttrSize: 8}
	t[2] = ABI{Linux: "5.19", FS: fs | FSRefer, AttrSize: 8}
	t[3] = ABI{Linux: "6.2", FS: t[2].FS | FSTruncate, AttrSize: 8}
	t[4] = ABI{Linux: "6.7", FS: t[3].FS, Net: NetBindTCP | NetConnectTCP, AttrSize: 16}
	t[5] = t[4]
	t[5].Linux, t[5].FS = "6.10", t[4].FS|FSIoctlDev
	t[6] = t[5]
	t[6].Linux, t[6].Scoped, t[6].AttrSize = "6.12", ScopeAbstractUnix|ScopeSignal, 24
	t[7] = t[6]
	t[7].Linux, t[7].Restrict = "6.15", RestrictLogSameExecOff|RestrictLogNewExecOn|RestrictLogSubdomainsOff
	t[8] = t[7]
	t[8].Linux, t[8].Restrict = "7.0", t[7].Restrict|RestrictTSync
	t[9] = t[8]
	t[9].Linux, t[9].FS = "7.1", t[8].FS|FSResolveUnix
	t[10] = t[9]
	t[10].Linux, t[10].Net, t[10].AttrSize = "7.2", t[9].Net|NetBindUDP|NetConnectSendUDP, 48
	t[11] = t[10]
	t[11].Linux, t[11].Restrict = "7.3", t[10].Restrict|RestrictNoNewPrivs
	return t
}

// Of is the entry for a probed version.
func Of(version int) ABI {
	return AbiTable()[max(0, min(version, MaxABI))]
}

// FSNames, NetNames and ScopeNames are the kernel's names in lower case, in
// the order of the bits.
func FSNames() []string {
	return []string{"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file",
		"make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block", "make_sym",
		"refer", "truncate", "ioctl_dev", "resolve_unix"}
}

func NetNames() []string {
	return []string{"bind_tcp", "connect_tcp", "bind_udp", "connect_send_udp"}
}

func ScopeNames() []string {
	return []string{"abstract_unix_socket", "signal"}
}

// BitNames lists the names of the bits that are set.
func BitNames(bits uint64, names []string) string {
	var out []string
	for i, n := range names {
		if bits&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, " ")
}
