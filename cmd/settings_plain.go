//go:build noviper

package cmd

import (
	"os"

	"github.com/pelletier/go-toml/v2"
)

func readSettings(file string) (all map[string]any, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = toml.Unmarshal(text, &all)
	}
	return all, err
}
