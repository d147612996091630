package landlock

import "strings"

// The Landlock rights on files, as in linux/landlock.h (see the kernel's
// Documentation/userspace-api/landlock.rst). They are repeated here so that plans for Linux can
// be made and tested on every system.
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

const (
	NetBindTCP uint64 = 1 << iota
	NetConnectTCP
	NetBindUDP
	NetConnectSendUDP
)

const (
	ScopeAbstractUnix uint64 = 1 << iota
	ScopeSignal
)

// ABI has what a version of Landlock supports.
type ABI struct {
	Linux  string // the first kernel that has it
	FS     uint64 // rights on files that a ruleset may handle
	Net    uint64
	Scoped uint64
}

// versions has what each version of Landlock adds, starting with 1.
var versions = [...]ABI{
	{Linux: "5.13", FS: FSMakeSym<<1 - 1},
	{Linux: "5.19", FS: FSRefer},
	{Linux: "6.2", FS: FSTruncate},
	{Linux: "6.7", Net: NetBindTCP | NetConnectTCP},
	{Linux: "6.10", FS: FSIoctlDev},
	{Linux: "6.12", Scoped: ScopeAbstractUnix | ScopeSignal},
	{Linux: "6.15"}, // flags of landlock_restrict_self(2); so do 8 and 11
	{Linux: "7.0"},
	{Linux: "7.1", FS: FSResolveUnix},
	{Linux: "7.2", Net: NetBindUDP | NetConnectSendUDP},
	{Linux: "7.3"},
}

// MaxABI is the newest version of Landlock that this package knows. A newer one is used like
// this one.
const MaxABI = len(versions)

// Of returns what a probed version supports. Version 0 is no Landlock.
func Of(version int) (a ABI) {
	for _, v := range versions[:max(0, min(version, MaxABI))] {
		a = ABI{v.Linux, a.FS | v.FS, a.Net | v.Net, a.Scoped | v.Scoped}
	}
	return a
}

// FSNames, NetNames and ScopeNames have the kernel's names in lower case, in the order of the
// bits.
var (
	FSNames = [...]string{"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file",
		"make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block", "make_sym",
		"refer", "truncate", "ioctl_dev", "resolve_unix"}
	NetNames   = [...]string{"bind_tcp", "connect_tcp", "bind_udp", "connect_send_udp"}
	ScopeNames = [...]string{"abstract_unix_socket", "signal"}
)

// BitNames returns the names of the bits that are set.
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
