// Package afero stands in for github.com/spf13/afero, through which viper reads
// files. That package links net/http, crypto/tls and regexp, whose initialisation
// would slow down every start of zsbx, although preferences are one file of the real
// file system. Only what viper and locafero call is here.
package afero

import (
	"io/fs"
	"os"
	"path/filepath"
)

type Fs struct{}

func NewOsFs() Fs { return Fs{} }

func (Fs) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (Fs) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

func ReadFile(_ Fs, name string) ([]byte, error) { return os.ReadFile(name) }

func Exists(_ Fs, name string) (bool, error) {
	_, err := os.Stat(name)
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

func Walk(_ Fs, root string, f filepath.WalkFunc) error { return filepath.Walk(root, f) }
