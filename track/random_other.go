//go:build !linux

package track

import "crypto/rand"

// randomness reads from the system's generator.
type randomness struct{}

func (randomness) Read(p []byte) (int, error) { return rand.Read(p) }
