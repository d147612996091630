//go:build !linux

package broker

import "errors"

// Broker answers calls on Linux only.
type Broker struct{}

func (b *Broker) Serve() error { return errors.ErrUnsupported }

// Queue returns -1: there is none.
func (b *Broker) Queue() int { return -1 }

// Close does nothing.
func (b *Broker) Close() error { return nil }
