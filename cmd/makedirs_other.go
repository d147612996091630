//go:build !linux && !darwin

package cmd

import (
	"errors"
	"io/fs"
	"os"
)

// makePath makes nothing: files have no owner that is known here.
func makePath(string, bool) error { return errors.ErrUnsupported }

func openFileNoLinks(name string, flags int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flags, perm)
}
