//go:build !noviper

package cmd

import (
	"errors"
	"fmt"
	"slices"

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
	// Viper's Unmarshal has errors of several lines, and names no setting in them.
	names := v.AllKeys()
	slices.Sort(names)
	known := map[string]*string{"color": &s.Color, "track": &s.Track}
	for _, name := range names {
		to := known[name]
		if to == nil {
			return fmt.Errorf("unknown setting %q: there are color and track", name)
		}
		var ok bool
		if *to, ok = v.Get(name).(string); !ok {
			return fmt.Errorf("%s: must be a string", name)
		}
	}
	return nil
}
