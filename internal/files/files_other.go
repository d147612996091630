//go:build !linux && !darwin

package files

import (
	"errors"
	"io/fs"
)

// Lstat fails, as all here does: only Linux and macOS are known.
func Lstat(string) (Stat, error) { return Stat{}, errors.ErrUnsupported }

// Read fails.
func Read(string, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

// List fails.
func List(string, int) ([]fs.DirEntry, error) { return nil, errors.ErrUnsupported }
