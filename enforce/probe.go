package enforce

// Probe asks the kernel what it can enforce. It takes a few microseconds and
// changes nothing: that a promise really holds is proved by SelfTest, and by
// the start of a command, which fails when the kernel refuses a layer. On
// systems that are neither Linux nor macOS all is false. Where this machine is
// too short of something to be asked, Caps.Err says so.
//
// That a mount namespace can be had is assumed where nothing speaks against
// it; see ProbeNamespaces.
func Probe() Caps { return probe() }

// Assume is what a machine with another system, "linux" or "macos", can usually
// enforce, for saying what a policy would be there.
func Assume(os string) Caps {
	if os == "macos" {
		return Caps{OS: os, Seatbelt: true, Arch: "arm64"}
	}
	return Caps{OS: os, Landlock: 11, Seccomp: true, SeccompNotify: true, Arch: "amd64"}
}
