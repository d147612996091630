// Package afero stands in for github.com/spf13/afero, through which viper reads
// files. That package links net/http, crypto/tls and regexp, and what these
// initialise counts for every start of zsbx, although preferences are one file of
// the real file system. Only what viper and locafero call is here.
//
// go.mod puts it in the place of the other one.
package afero

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is an open file.
type File interface {
	io.ReadWriteCloser
	io.StringWriter
	Sync() error
}

// Fs is a file system.
type Fs interface {
	Stat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
}

type osFs struct{}

// NewOsFs is the real file system.
func NewOsFs() Fs { return osFs{} }

func (osFs) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (osFs) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	return os.OpenFile(name, flag, perm)
}

// ReadFile gives what is in a file.
func ReadFile(fsys Fs, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Exists reports whether there is something of that name.
func Exists(fsys Fs, name string) (bool, error) {
	_, err := fsys.Stat(name)
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// Walk is filepath.Walk: every Fs here is the real one.
func Walk(_ Fs, root string, f filepath.WalkFunc) error { return filepath.Walk(root, f) }
