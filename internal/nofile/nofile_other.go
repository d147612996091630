//go:build !linux || !(amd64 || arm64)

package nofile

func read() [2]uint64 { return [2]uint64{} }
