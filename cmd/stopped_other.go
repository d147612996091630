//go:build !linux

package cmd

// isStopped believes the event that said so: there is no cheap way to ask.
func isStopped(int) bool { return true }
