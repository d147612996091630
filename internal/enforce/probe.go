package enforce

// Assume returns what a machine with another system, "linux" or "macos", can usually enforce,
// to show what a policy means there.
func Assume(os string) Caps {
	if os == "macos" {
		return Caps{OS: os, Seatbelt: true, Arch: "arm64"}
	}
	return Caps{OS: os, Landlock: 11, Seccomp: true, SeccompNotify: true, Arch: "amd64"}
}

// InPlace returns what can be enforced on a command that replaces the calling program
// (fork.Exec). Then there is nobody to answer its calls or to end what it leaves running, and a
// program with threads can't enter a user namespace. With keep, what it leaves may keep
// running.
func (c Caps) InPlace(keep bool) Caps {
	c.Orphans = !keep
	if c.SeccompNotify {
		c.SeccompNotify = false
		c.SeccompNotifyReason = "a command that replaces zsbx has none"
	}
	if c.MountNS && !c.Privileged {
		c.MountNS = false
		c.MountReason = "a program that replaces itself can't enter a user namespace"
		c.MountHint = ""
	}
	c.HomeReason = "nobody is left to remove it"
	c.PidsReason = "a program that replaces itself keeps its process id"
	return c
}

// OrphansGap returns the gap of every command that replaces the calling program, confined or
// only tracked, unless what it leaves may keep running.
func OrphansGap() Gap {
	return Gap{Name: GapOrphans, Kind: Hardening, Promise: "what the command leaves running is ended with it",
		Why: "a command that replaces zsbx has no supervisor"}
}
