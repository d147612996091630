package enforce

// ProbeNamespaces finds out by doing whether a private mount namespace can be
// had, and sets MountNS and MountReason accordingly. It takes a process: about
// as long as starting a command.
func ProbeNamespaces(caps *Caps) { probeNamespaces(caps) }
