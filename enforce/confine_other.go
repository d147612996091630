//go:build !linux && !darwin

package enforce

import (
	"errors"

	"github.com/zsbx/zsbx/enforce/fork"
)

func (p *Plan) confine(*fork.Command) error { return errors.ErrUnsupported }

func (p *Plan) confineMediated(*fork.Command) (*Mediator, error) { return nil, errors.ErrUnsupported }
