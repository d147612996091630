package resolve

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
)

// searchPath returns PATH's absolute elements, cleaned. A relative element depends on the
// working directory, so no right is tied to it.
func searchPath(h *host.Host) []string {
	var dirs []string
	for dir := range strings.SplitSeq(h.Getenv("PATH"), ":") {
		if strings.HasPrefix(dir, "/") {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs
}

// realSearchPath returns PATH, also with its links followed: a directory that does not exist may
// be made later. It is never nil.
func realSearchPath(h *host.Host) []string {
	dirs := []string{}
	for _, dir := range searchPath(h) {
		dirs = append(dirs, dir)
		if real := h.Way(dir).Path; real != dir {
			dirs = append(dirs, real)
		}
	}
	return dirs
}

// programDir returns the directory in which the search path finds a program, as it is
// written in PATH. It is "" for a program that is named by its path, or not found.
func programDir(h *host.Host, program string, search []string) string {
	if program == "" || strings.Contains(program, "/") {
		return ""
	}
	for _, dir := range search {
		if at := h.Look(path.Join(dir, program)); at.Presence == host.Present && !at.IsDir() {
			return dir
		}
	}
	return ""
}

// What is on PATH, and open to the command or not.

// venvVariable names the first virtual environment on PATH in a preset's path.
const venvVariable = "ZSBX_VENV"

// venv returns the first virtual environment on PATH, or "". It has a file pyvenv.cfg, and its
// programs are in bin (venv, in Python's documentation). Directories of the system are not
// looked at.
func venv(h *host.Host) string {
	for _, dir := range searchPath(h) {
		top, name := path.Split(dir)
		if name == "bin" && !ordinary(dir) && h.Look(top+"pyvenv.cfg").Presence == host.Present {
			return path.Clean(top)
		}
	}
	return ""
}

// ordinary reports whether a directory is one of the system's, or one of the usual ones for
// programs in the home directory.
func ordinary(dir string) bool {
	system := func(top string) bool { return host.Within(dir, top) }
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/opt", "/snap", "/nix"}, system) ||
		strings.HasSuffix(dir, "/.local/bin") || strings.HasSuffix(dir, "/.cargo/bin") ||
		strings.HasSuffix(dir, "/go/bin")
}
