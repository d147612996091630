//go:build !linux

package enforce

func inheritsSockets() bool { return false }
