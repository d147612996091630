//go:build !linux && !darwin

package fork

import (
	"errors"
	"syscall"
)

func start(*Command) (*Process, error) { return nil, errors.ErrUnsupported }

func execSelf(*Command) error { return errors.ErrUnsupported }

func (p *Process) next() (Event, error)        { return Event{}, errors.ErrUnsupported }
func (p *Process) signal(syscall.Signal) error { return errors.ErrUnsupported }
func (p *Process) kill() error                 { return errors.ErrUnsupported }
func (p *Process) detach() error               { return errors.ErrUnsupported }
func (p *Process) close() error                { return errors.ErrUnsupported }
func (p *Process) over() bool                  { return true }

func sandboxMain() int { return 125 }
