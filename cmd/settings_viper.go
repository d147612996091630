//go:build !noviper

package cmd

import (
	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// decodeSettings reads file into s, strictly: one Viper of our own, one
// absolute file, no search path, no environment, no unknown keys and no
// conversions between types.
func decodeSettings(file string, s *settings) error {
	v := viper.New()
	v.SetConfigFile(file)
	v.SetConfigType("toml")
	if err := v.ReadInConfig(); err != nil {
		return err
	}
	return v.Unmarshal(s, func(c *mapstructure.DecoderConfig) {
		c.ErrorUnused, c.WeaklyTypedInput, c.DecodeHook = true, false, nil
	})
}
