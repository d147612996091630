//go:build !linux

package broker

import "errors"

// Broker answers calls on Linux only.
type Broker struct{}

func (m *Broker) Serve() error { return errors.ErrUnsupported }

// Queue returns -1: there is none.
func (m *Broker) Queue() int { return -1 }

// Close does nothing.
func (m *Broker) Close() error { return nil }
