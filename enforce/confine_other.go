//go:build !linux && !darwin

package enforce

import (
	"errors"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/broker"
)

func (p *Plan) confine(*fork.Command) error { return errors.ErrUnsupported }

func (p *Plan) confineMediated(*fork.Command) (*broker.Broker, error) {
	return nil, errors.ErrUnsupported
}
