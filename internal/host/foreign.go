package host

import (
	"io/fs"
	"slices"
	"strings"
)

// Foreign returns a host of the system h.OS, to print a profile for that system on this one.
// Only the home directory and the working directory are looked at. All other paths count as
// directories, except the symbolic links that every macOS has, and devices.
func Foreign(h Host) Host {
	links := map[string]string{}
	if h.OS == "macos" {
		links = map[string]string{"/etc": "private/etc", "/tmp": "private/tmp", "/var": "private/var"}
	}
	here := h
	known := func(path string) bool {
		return Within(path, h.Dir) || h.Home != "" && Within(path, h.Home)
	}
	h.Lstat = func(path string) (Stat, error) {
		switch {
		case known(path):
			return here.Lstat(path)
		case links[path] != "":
			return Stat{Mode: fs.ModeSymlink}, nil
		case strings.HasPrefix(path, "/dev/") && !slices.Contains([]string{"/dev/fd", "/dev/pts", "/dev/shm"}, path):
			return Stat{Mode: fs.ModeDevice | fs.ModeCharDevice}, nil
		}
		return Stat{Mode: fs.ModeDir}, nil
	}
	h.CountsDirs = nil
	// What this machine has in a directory says nothing about the other.
	h.ReadDir = func(path string, n int) ([]fs.DirEntry, error) {
		if known(path) {
			return here.ReadDir(path, n)
		}
		return nil, nil
	}
	h.Readlink = func(path string) (string, error) {
		if l := links[path]; l != "" {
			return l, nil
		}
		return here.Readlink(path)
	}
	return h
}
