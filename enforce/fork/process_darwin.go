package fork

import (
	"os"
	"syscall"
)

// There is no keeper here.
func (p *Process) next() (Event, error) { return Event{}, ErrKeeperLost }
func (p *Process) send(message) error   { return os.ErrProcessDone }
func (p *Process) hungUp() bool         { return true }
func (p *Process) close() error         { return ErrKeeperLost }

// Memory is for the Steps of Linux.
type Memory struct{}

// CanForward says whether Command.Forward works here.
const CanForward = false

func (p *Process) endForward(bool) {}

// Forwarded is 0 here.
func (p *Process) Forwarded() syscall.Signal { return 0 }
