//go:build !linux || (!amd64 && !arm64)

package fork

import "syscall"

//lint:file-ignore U1000 Linux on other machines than these two uses it all

// CanForward says that Command.Forward works with a keeper here.
const CanForward = false

type forwarder struct{}

func (p *Process) forward([]syscall.Signal, bool) error { return nil }
func (p *Process) endForward()                          {}
func (p *Process) spareKeeper()                         {}

// Forwarded is 0 here.
func (p *Process) Forwarded() syscall.Signal { return 0 }
