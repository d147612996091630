//go:build !linux && !darwin

package enforce

import "errors"

func selfTest(Caps) ([]Proof, error) { return nil, errors.ErrUnsupported }
