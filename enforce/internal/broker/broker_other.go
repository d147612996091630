//go:build !linux

package broker

import (
	"errors"
)

type mediator struct{}

func (m *mediator) serve() error { return errors.ErrUnsupported }
func (m *mediator) close() error { return nil }
