//go:build !linux && !darwin

package policy

import (
	"errors"
	"io"
)

func lstat(string) (Stat, error) { return Stat{}, errors.ErrUnsupported }

func workingDirectory() (string, error) { return "", errors.ErrUnsupported }

func openRegular(string) (io.ReadCloser, error) { return nil, errors.ErrUnsupported }
