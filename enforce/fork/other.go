//go:build !linux

package fork

import "syscall"

// Memory is for the Steps of Linux.
type Memory struct{}

// CanForward says that Command.Forward works with a keeper here.
const CanForward = false

type forwarder struct{}

func (p *Process) endForward() {}

// Forwarded is 0 here.
func (p *Process) Forwarded() syscall.Signal { return 0 }
