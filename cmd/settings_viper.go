//go:build !noviper

package cmd

import "github.com/spf13/viper"

// readSettings reads one absolute file with a new Viper: no search path, no
// environment. Viper's Unmarshal is not used, because its errors have several lines.
func readSettings(file string) (map[string]any, error) {
	v := viper.New()
	v.SetConfigFile(file)
	err := v.ReadInConfig()
	return v.AllSettings(), err
}
