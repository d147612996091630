// Package gotenv stands in for github.com/subosito/gotenv, with which viper reads
// .env files. That package compiles regular expressions when it is initialised,
// which would take a tenth of a millisecond of every start of zsbx. zsbx's preferences
// are TOML.
package gotenv

import (
	"errors"
	"io"
)

type Env map[string]string

func StrictParse(io.Reader) (Env, error) {
	return nil, errors.New("this program reads no .env files")
}
