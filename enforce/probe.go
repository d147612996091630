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
