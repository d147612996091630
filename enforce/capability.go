package enforce

import "github.com/zsbx/zsbx/enforce/internal/landlock"

// capability is one bit of capabilities(7).
type capability struct {
	bit  uint
	name string
	why  string
}

// buildCapabilities are what root keeps, and why: what installing packages,
// unpacking archives and "make install" need as root in CI. All others are
// dropped, those among Docker's defaults too: CAP_MKNOD (a device node reaches
// every disk past Landlock), CAP_NET_RAW, CAP_SYS_CHROOT, CAP_SETPCAP and
// CAP_AUDIT_WRITE.
func buildCapabilities() []capability {
	return []capability{
		{0, "chown", "tar, dpkg and install(1) give files their owners"},
		{1, "dac_override", "root's builds read and write the files of others within the allowed trees"},
		{3, "fowner", "chmod(2) and utimensat(2) on files with other owners: tar, rsync"},
		{4, "fsetid", "set-group-ID bits survive chown(2): dpkg"},
		{6, "setgid", "apt and npm give up root for downloads and scripts"},
		{7, "setuid", "as setgid"},
		{10, "net_bind_service", "development servers on ports below 1024"},
		{31, "setfcap", "package managers set file capabilities; no more than a set-user-ID bit would do"},
	}
}

// capKill lets root signal its own children that gave up root. It is kept
// only where signals are kept inside, by Landlock or by the supervisor.
const capKill = 5

// keptCapabilities are the bits that the command keeps of those it has.
func keptCapabilities(signalsHeld bool) uint64 {
	var keep uint64
	for _, c := range buildCapabilities() {
		keep |= 1 << c.bit
	}
	if signalsHeld {
		keep |= 1 << capKill
	}
	return keep
}

// capabilityNames lists the kept ones by name.
func capabilityNames(bits uint64) string {
	names := make([]string, 64)
	for _, c := range buildCapabilities() {
		names[c.bit] = c.name
	}
	names[capKill] = "kill"
	return landlock.BitNames(bits, names)
}
