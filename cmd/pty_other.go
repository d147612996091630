//go:build !linux && !darwin

package cmd

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track"
)

// relay is not there on this system.
type relay struct{}

func newRelay(stdin, stdout *os.File) (*relay, error) {
	return nil, fmt.Errorf("--tty: %w", errors.ErrUnsupported)
}

func (r *relay) attach(*fork.Command)                     {}
func (r *relay) begin(*track.Session, *atomic.Bool) error { return nil }
func (r *relay) pump() *pump                              { return nil }
func (r *relay) raw() error                               { return nil }
func (r *relay) restore()                                 {}
