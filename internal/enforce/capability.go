package enforce

import (
	"cmp"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
)

const capKill = 5

// capabilityNames returns the names of the capabilities that root keeps, by their bits
// (capabilities(7)). They are what installing packages, unpacking archives and "make install"
// need as root in CI. All others are dropped, even some of Docker's defaults: CAP_MKNOD (a
// device node opens every disk despite Landlock), CAP_NET_RAW, CAP_SYS_CHROOT, CAP_SETPCAP and
// CAP_AUDIT_WRITE.
func capabilityNames() []string {
	return []string{
		0:       "chown",            // tar, dpkg and install(1) give files their owners
		1:       "dac_override",     // root's builds read and write the files of others within the allowed trees
		3:       "fowner",           // chmod(2) and utimensat(2) on files with other owners: tar, rsync
		4:       "fsetid",           // set-group-ID bits survive chown(2): dpkg
		capKill: "kill",             // to signal children that gave up root; see keptCapabilities
		6:       "setgid",           // apt and npm drop root for downloads and scripts
		7:       "setuid",           // for the same
		10:      "net_bind_service", // development servers on ports below 1024
		31:      "setfcap",          // package managers; they give no more than a set-user-ID bit
	}
}

// keptCapabilities returns the bits that the command may keep. It may keep CAP_KILL only if
// Landlock, a PID namespace or the broker keeps signals inside.
func keptCapabilities(signalsKept bool) uint64 {
	var keep uint64
	for bit, name := range capabilityNames() {
		if name != "" && (bit != capKill || signalsKept) {
			keep |= 1 << bit
		}
	}
	return keep
}

// keeps returns the capabilities that the command keeps. In a private user namespace it keeps
// none.
func (p *Plan) keeps() uint64 {
	if p.Mounts != nil && p.Mounts.UserNS {
		return 0
	}
	return p.Caps.Capabilities &^ p.DropCapabilities
}

func (p *Plan) keptText() string {
	return cmp.Or(landlock.BitNames(p.keeps(), capabilityNames()), "none")
}
