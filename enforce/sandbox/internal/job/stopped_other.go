//go:build !linux && !darwin

package job

// IsStopped knows nothing of processes here.
func IsStopped(int) bool { return false }

// StopSelf is never called.
func StopSelf(func() bool) bool { return false }
