//go:build !linux && !darwin

package enforce

import "runtime"

func probe() Caps { return Caps{OS: runtime.GOOS, Arch: runtime.GOARCH} }
