// Package yaml stands in for go.yaml.in/yaml/v3, with which viper reads YAML. That
// package compiles regular expressions and fills tables when it is initialised,
// which would slow down every start of zsbx. zsbx's preferences are TOML.
package yaml

import "errors"

var errNoYAML = errors.New("this program knows no YAML")

func Marshal(any) ([]byte, error) { return nil, errNoYAML }

func Unmarshal([]byte, any) error { return errNoYAML }
