//go:build !linux && !darwin

package cmd

// isStopped knows nothing of processes here.
func isStopped(int) bool { return false }

// stopSelf is never called.
func stopSelf(func() bool) bool { return false }
