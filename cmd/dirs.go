package cmd

import (
	"errors"
	"os"
	"path/filepath"
)

// errNoHome says that there is no directory for the user's own files.
var errNoHome = errors.New("neither HOME nor the XDG base directory is set")

// configHome is $XDG_CONFIG_HOME, ~/.config by default, and "" without HOME.
func (a *app) configHome() string { return a.xdg("XDG_CONFIG_HOME", ".config") }

// stateHome is $XDG_STATE_HOME, ~/.local/state by default, and "" without
// HOME.
func (a *app) stateHome() string { return a.xdg("XDG_STATE_HOME", ".local/state") }

// xdg gives a directory of the XDG base directory specification. Relative
// values are to be ignored, the specification says.
func (a *app) xdg(name, below string) string {
	if v := a.getenv(name); filepath.IsAbs(v) {
		return v
	}
	home := a.homeDir()
	if home == "" {
		return ""
	}
	return filepath.Join(home, below)
}

func (a *app) homeDir() string {
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return home
	}
	return a.home
}

// homeIsThere is asked before anything is made below stateHome: a home directory
// that does not exist, as that of an account of the system, is not made.
func (a *app) homeIsThere() error {
	if filepath.IsAbs(a.getenv("XDG_STATE_HOME")) {
		return nil
	}
	_, err := os.Stat(a.homeDir())
	return err
}
