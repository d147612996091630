package syntax

import "runtime"

// ThisSystem returns the name that policies use for this system.
func ThisSystem() string {
	if runtime.GOOS == "darwin" {
		return "macos"
	}
	return runtime.GOOS
}

// Systems are those that a policy has overrides for.
var Systems = []string{"linux", "macos"}
