package policy

import (
	"io/fs"
	"strings"
)

// Foreign makes a host of another system, h.OS, out of this one, for printing a
// profile that is to be used there. Only the home directory and the working
// directory are looked at; all other paths count as directories, but for the
// symbolic links that every macOS has, for devices, and for the resolver's socket.
func Foreign(h Host) Host {
	links := map[string]string{}
	if h.OS == "macos" {
		links = map[string]string{"/etc": "private/etc", "/tmp": "private/tmp", "/var": "private/var"}
	}
	known := func(path string) bool {
		return Within(path, h.Dir) || h.Home != "" && Within(path, h.Home)
	}
	lstat, readlink := h.Lstat, h.Readlink
	h.Lstat = func(path string) (Stat, error) {
		if known(path) {
			return lstat(path)
		}
		if links[path] != "" {
			return Stat{Mode: fs.ModeSymlink | 0o777}, nil
		}
		return Stat{Mode: foreignMode(path)}, nil
	}
	// What this machine has in a directory says nothing about the other.
	readDir := h.ReadDir
	h.ReadDir = func(path string) ([]fs.DirEntry, error) {
		if known(path) {
			return readDir(path)
		}
		return nil, nil
	}
	h.Readlink = func(path string) (string, error) {
		if l := links[path]; l != "" {
			return l, nil
		}
		return readlink(path)
	}
	return h
}

// foreignMode is what a path most likely is.
func foreignMode(path string) fs.FileMode {
	switch {
	case path == "/dev/fd" || path == "/dev/pts" || path == "/dev/shm":
	case strings.HasPrefix(path, "/dev/"):
		return fs.ModeDevice | fs.ModeCharDevice | 0o666
	case path == "/private/var/run/mDNSResponder":
		return fs.ModeSocket | 0o666
	}
	return fs.ModeDir | 0o755
}
