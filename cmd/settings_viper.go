//go:build !noviper

package cmd

import (
	"errors"
	"fmt"
	"slices"

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
		if parse := (viper.ConfigParseError{}); errors.As(err, &parse) {
			err = parse.Unwrap()
		}
		return err
	}
	// Viper's own errors have several lines and name no setting.
	names := v.AllKeys()
	slices.Sort(names)
	for _, name := range names {
		if name != "color" && name != "track" {
			return fmt.Errorf("unknown setting %q: there are color and track", name)
		}
		if _, ok := v.Get(name).(string); !ok {
			return fmt.Errorf("%s: must be a string", name)
		}
	}
	return v.Unmarshal(s, func(c *mapstructure.DecoderConfig) {
		c.ErrorUnused, c.WeaklyTypedInput, c.DecodeHook = true, false, nil
	})
}
