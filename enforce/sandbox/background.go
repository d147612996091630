package sandbox

import "syscall"

// Outcome is how a program is to end: with a status, or by a signal if that is not
// 0.
type Outcome struct {
	Status int
	Signal syscall.Signal
}
