//go:build !noviper

package cmd

import "github.com/spf13/viper"

// readSettings reads a file: one Viper of our own, one absolute file, no search path, no
// environment. Viper's Unmarshal is not used: it has errors of several lines.
func readSettings(file string) (map[string]any, error) {
	v := viper.New()
	v.SetConfigFile(file)
	err := v.ReadInConfig()
	return v.AllSettings(), err
}
