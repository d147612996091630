//go:build !linux && !darwin

package policy

import (
	"errors"
	"io/fs"
)

func lstat(string) (Stat, error) { return Stat{}, errors.ErrUnsupported }

func workingDirectory() (string, error) { return "", errors.ErrUnsupported }

// ReadFile fails: only Linux and macOS are known.
func ReadFile(string) ([]byte, error) { return nil, errors.ErrUnsupported }

func readSome(string, int) ([]fs.DirEntry, error) { return nil, errors.ErrUnsupported }
