//go:build !linux

package enforce

import (
	"errors"

	"github.com/zsbx/zsbx/enforce/fork"
)

func (p *Plan) confine(*fork.Command) error { return errors.ErrUnsupported }
