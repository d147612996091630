//go:build !linux

package enforce

func probeNamespaces(*Caps) {}

func lateHint(error) string { return "" }
