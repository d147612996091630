//go:build !linux && !darwin

package enforce

import (
	"errors"
	"runtime"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/broker"
)

func probe() Caps { return Caps{OS: runtime.GOOS, Arch: runtime.GOARCH} }

func (p *Plan) confine(*fork.Command) error { return errors.ErrUnsupported }

func (p *Plan) confineMediated(*fork.Command) (*broker.Broker, error) {
	return nil, errors.ErrUnsupported
}
