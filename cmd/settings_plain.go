//go:build noviper

package cmd

import (
	"os"

	"github.com/pelletier/go-toml/v2"
)

// decodeSettings reads file into s, strictly.
func decodeSettings(file string, s *settings) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return toml.NewDecoder(f).DisallowUnknownFields().Decode(s)
}
