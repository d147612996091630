//go:build !linux && !darwin

package selftest

import (
	"errors"

	"github.com/zsbx/zsbx/enforce"
)

func selfTest(enforce.Caps) ([]Proof, error) { return nil, errors.ErrUnsupported }
