package fork

import "os"

// There is no keeper here.
func (p *Process) next() (Event, error) { return Event{}, ErrKeeperLost }
func (p *Process) send(message) error   { return os.ErrProcessDone }
func (p *Process) wakeKeeper()          {}
func (p *Process) hungUp() bool         { return true }
func (p *Process) close() error         { return ErrKeeperLost }

// Memory is for the Steps of Linux.
type Memory struct{}
