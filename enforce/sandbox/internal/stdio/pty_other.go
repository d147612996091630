//go:build !linux && !darwin

package stdio

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
)

// Relay is not there on this system.
type Relay struct{}

type session interface {
	Signal(s syscall.Signal) error
	Over() bool
}

// NewRelay says so.
func NewRelay(io.Reader, io.Writer) (*Relay, error) {
	return nil, fmt.Errorf("a pseudo-terminal: %w", errors.ErrUnsupported)
}

func (r *Relay) Attach(*fork.Command)              {}
func (r *Relay) Begin(session, *atomic.Bool) error { return nil }
func (r *Relay) Pump() *Pump                       { return nil }
func (r *Relay) Raw() error                        { return nil }
func (r *Relay) Restore()                          {}
func (r *Relay) Close()                            {}
