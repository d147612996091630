//go:build !darwin

package libsystem

// UserTemp is "": only macOS has such a directory.
func UserTemp() string { return "" }
