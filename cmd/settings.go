package cmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
)

// settingsFile has the user's preferences, below $XDG_CONFIG_HOME. Nothing in it can
// widen a policy.
const settingsFile = "zsbx/settings.toml"

// settings are the user's preferences that are set: color, and track, the default of
// run --track. viper reads their file; in a build with the tag noviper, go-toml does.
type settings map[string]string

// loadSettings reads the preferences. Usually there is no file, and nothing is
// built to read it.
func loadSettings(env []string) (settings, error) {
	h := host.Host{Env: env}
	if home := h.Getenv("HOME"); filepath.IsAbs(home) {
		h.Home = home
	}
	file := filepath.Join(h.ConfigHome(), settingsFile)
	st, err := os.Stat(file)
	if err != nil || h.ConfigHome() == "" {
		return nil, nil
	}
	s := settings{}
	wrong := []error{errors.New("is not a regular file")}
	if st.Mode().IsRegular() {
		wrong = s.read(file)
	}
	for i, err := range wrong {
		wrong[i] = fmt.Errorf("%s: %w", file, files.Plain(err))
	}
	if wrong != nil {
		return nil, coded(supervise.CodeUsage, errors.Join(wrong...))
	}
	return s, nil
}

// read reads a file strictly: no unknown keys, no conversions of types. It returns all
// that is wrong.
func (s settings) read(file string) (wrong []error) {
	all, err := readSettings(file)
	if err != nil {
		return []error{err}
	}
	known := map[string][]string{"color": {"auto", "always", "never"}, "track": trackers}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if known[name] == nil {
			wrong = append(wrong, fmt.Errorf("unknown setting %q: the settings are color and track", name))
			continue
		}
		s[name] = fmt.Sprint(all[name])
		if bad := oneOf(s[name], known[name]); bad != nil {
			wrong = append(wrong, fmt.Errorf("%s %s: %w", name, shell.Quote(s[name]), bad))
		}
	}
	return wrong
}

// color reports whether to colour what is written to w. By default a terminal is
// coloured, unless NO_COLOR (see no-color.org) or TERM=dumb is set.
func (s settings) color(env []string, w io.Writer) bool {
	if set := s["color"]; set == "always" || set == "never" {
		return set == "always"
	}
	h := host.Host{Env: env}
	t := h.Getenv("TERM")
	return t != "" && t != "dumb" && h.Getenv("NO_COLOR") == "" && isTerminal(w)
}
