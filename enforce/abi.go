package enforce

import "strings"

// The Landlock rights on files, as in linux/landlock.h (see the kernel's
// Documentation/userspace-api/landlock.rst). They are repeated here so that a
// plan for Linux can be made and tested on every system.
const (
	fsExecute uint64 = 1 << iota
	fsWriteFile
	fsReadFile
	fsReadDir
	fsRemoveDir
	fsRemoveFile
	fsMakeChar
	fsMakeDir
	fsMakeReg
	fsMakeSock
	fsMakeFifo
	fsMakeBlock
	fsMakeSym
	fsRefer
	fsTruncate
	fsIoctlDev
	fsResolveUnix
)

// The Landlock rights on the network.
const (
	netBindTCP uint64 = 1 << iota
	netConnectTCP
	netBindUDP
	netConnectSendUDP
)

// The Landlock scopes.
const (
	scopeAbstractUnix uint64 = 1 << iota
	scopeSignal
)

// Flags of landlock_restrict_self(2). None is used: the audit log of a denial
// is what an administrator wants to see, and the other two act on processes
// that already run.
const (
	restrictLogSameExecOff uint32 = 1 << iota
	restrictLogNewExecOn
	restrictLogSubdomainsOff
	restrictTSync
	restrictNoNewPrivs
)

// abi is what one version of Landlock knows.
type abi struct {
	Linux    string // the first kernel that has it
	FS       uint64 // rights on files that a ruleset may handle
	Net      uint64
	Scoped   uint64
	AttrSize uintptr // bytes of struct landlock_ruleset_attr
	Restrict uint32  // flags of landlock_restrict_self(2)
}

// maxABI is the newest version of Landlock that this package knows. A kernel
// with a newer one is used as if it had this.
const maxABI = 11

// abiTable says what each version knows; entry 0 is no Landlock.
func abiTable() [maxABI + 1]abi {
	var t [maxABI + 1]abi
	fs := uint64(fsMakeSym<<1 - 1)
	t[1] = abi{Linux: "5.13", FS: fs, AttrSize: 8}
	t[2] = abi{Linux: "5.19", FS: fs | fsRefer, AttrSize: 8}
	t[3] = abi{Linux: "6.2", FS: t[2].FS | fsTruncate, AttrSize: 8}
	t[4] = abi{Linux: "6.7", FS: t[3].FS, Net: netBindTCP | netConnectTCP, AttrSize: 16}
	t[5] = t[4]
	t[5].Linux, t[5].FS = "6.10", t[4].FS|fsIoctlDev
	t[6] = t[5]
	t[6].Linux, t[6].Scoped, t[6].AttrSize = "6.12", scopeAbstractUnix|scopeSignal, 24
	t[7] = t[6]
	t[7].Linux, t[7].Restrict = "6.15", restrictLogSameExecOff|restrictLogNewExecOn|restrictLogSubdomainsOff
	t[8] = t[7]
	t[8].Linux, t[8].Restrict = "7.0", t[7].Restrict|restrictTSync
	t[9] = t[8]
	t[9].Linux, t[9].FS = "7.1", t[8].FS|fsResolveUnix
	t[10] = t[9]
	t[10].Linux, t[10].Net, t[10].AttrSize = "7.2", t[9].Net|netBindUDP|netConnectSendUDP, 48
	t[11] = t[10]
	t[11].Linux, t[11].Restrict = "7.3", t[10].Restrict|restrictNoNewPrivs
	return t
}

// abiOf is the entry for a probed version.
func abiOf(version int) abi {
	return abiTable()[max(0, min(version, maxABI))]
}

// fsNames, netNames and scopeNames are the kernel's names in lower case, in
// the order of the bits.
func fsNames() []string {
	return []string{"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file",
		"make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block", "make_sym",
		"refer", "truncate", "ioctl_dev", "resolve_unix"}
}

func netNames() []string {
	return []string{"bind_tcp", "connect_tcp", "bind_udp", "connect_send_udp"}
}

func scopeNames() []string {
	return []string{"abstract_unix_socket", "signal"}
}

// bitNames lists the names of the bits that are set.
func bitNames(bits uint64, names []string) string {
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
