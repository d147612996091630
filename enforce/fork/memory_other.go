//go:build !linux

package fork

// Memory is for the Steps of Linux.
type Memory struct{}
