//go:build !linux || !(amd64 || arm64)

package quiet

func Begun(*uint32) {}
func Resume()       {}
