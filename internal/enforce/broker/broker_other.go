//go:build !linux

package broker

import (
	"errors"

	"github.com/zsbx/zsbx/internal/egress"
)

// Broker answers calls on Linux only.
type Broker struct {
	Events []egress.Sink
	Warn   func(string)
}

func (b *Broker) Serve() error { return errors.ErrUnsupported }

// Queue returns -1: there is none.
func (b *Broker) Queue() int { return -1 }

// Hurry and NameAll do nothing.
func (b *Broker) Hurry()   {}
func (b *Broker) NameAll() {}

// Close does nothing.
func (b *Broker) Close() error { return nil }
