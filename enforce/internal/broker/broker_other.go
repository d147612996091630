//go:build !linux

package broker

import (
	"errors"
	"os/exec"
)

type mediator struct{}

func (m *mediator) serve() error { return errors.ErrUnsupported }
func (m *mediator) close() error { return nil }

func (m *mediator) handOver(*exec.Cmd) error { return errors.ErrUnsupported }

func serveKept() error { return errors.ErrUnsupported }
