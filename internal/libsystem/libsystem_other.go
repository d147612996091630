//go:build !darwin

package libsystem

// UserTemp returns "", since only macOS has such a directory.
func UserTemp() string { return "" }
