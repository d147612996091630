package cmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// settingsFile holds the user's preferences, below $XDG_CONFIG_HOME. Nothing
// in it can widen a policy.
const settingsFile = "zsbx/settings.toml"

// settings are the user's preferences. Their file is read by viper, or by
// go-toml alone in a build with the tag noviper.
type settings struct {
	Color string // auto, always or never
	Track string // the default of run --track
}

func defaultSettings() settings { return settings{Color: "auto", Track: "auto"} }

// withoutSettings tells the commands that go on when the preferences can't be
// read: those that look, and the one that ends what is left running.
func withoutSettings(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"reap", "ps", "check", "version"}, args[0])
}

// loadSettings reads the preferences. Usually there is no file, and nothing is
// built to read it.
func loadSettings(env []string) (settings, error) {
	s := defaultSettings()
	h := policy.Host{Env: env}
	if home := h.Getenv("HOME"); filepath.IsAbs(home) {
		h.Home = home
	}
	dir := h.ConfigHome()
	if dir == "" {
		return s, nil
	}
	file := filepath.Join(dir, settingsFile)
	st, err := os.Stat(file)
	if err != nil {
		return s, nil
	}
	if !st.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	} else {
		err = s.read(file)
	}
	if err != nil {
		return defaultSettings(), coded(codeUsage, fmt.Errorf("%s: %w", file, withoutPath(err)))
	}
	return s, nil
}

// read takes what a file says, strictly: no unknown keys, no conversions of types.
func (s *settings) read(file string) error {
	all, err := readSettings(file)
	if err != nil {
		return err
	}
	known := map[string]*string{"color": &s.Color, "track": &s.Track}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, ok := all[name].(string)
		switch to := known[name]; {
		case to == nil:
			return fmt.Errorf("unknown setting %q: there are color and track", name)
		case !ok:
			return fmt.Errorf("%s: must be a string", name)
		default:
			*to = text
		}
	}
	if !slices.Contains([]string{"auto", "always", "never"}, s.Color) {
		return fmt.Errorf("color %s: must be auto, always or never", shell.Quote(s.Color))
	}
	return checkTracker("track", s.Track)
}

// color reports whether w is to be coloured. NO_COLOR and TERM=dumb switch the
// automatic off, see no-color.org.
func (s settings) color(env []string, w io.Writer) bool {
	if s.Color != "auto" {
		return s.Color == "always"
	}
	if t := lookupEnv(env, "TERM"); t == "" || t == "dumb" || lookupEnv(env, "NO_COLOR") != "" {
		return false
	}
	return isTerminal(w)
}

// withoutPath strips the path from an error that is printed behind it.
func withoutPath(err error) error {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
