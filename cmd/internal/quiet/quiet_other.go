//go:build !linux || !(amd64 || arm64)

package quiet

// Begun does nothing here.
func Begun(*uint32) {}
