package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/files"
)

// ThisHost describes the running system, with the process's own working
// directory, home directory and environment. TempDir is left empty.
func ThisHost() (Host, error) { return HostIn("") }

// HostIn is ThisHost with another working directory for the command; "" is
// the process's own. A relative one is taken from that. It is an error if the
// directory does not exist.
func HostIn(dir string) (Host, error) {
	h := Host{Env: os.Environ(), ReadDir: os.ReadDir, ReadSome: files.List, ReadFile: ReadFile}
	h.Lstat, h.Readlink = files.Lstat, os.Readlink
	h.OS = ThisSystem()
	if h.Home = path.Clean(os.Getenv("HOME")); !path.IsAbs(h.Home) {
		h.Home = PasswdHome()
	}
	wd, err := workingDirectory()
	if !path.IsAbs(dir) {
		if err != nil {
			return Host{}, err
		}
		if dir == "" || dir == "." {
			h.Dir = wd // the kernel's own word for it is canonical
			return h, nil
		}
		dir = wd + "/" + dir
	}
	pl, err := h.spelled(dir)
	switch {
	case err != nil:
		return Host{}, fmt.Errorf("working directory %s: %w", dir, err)
	case pl.gone != "":
		return Host{}, fmt.Errorf("working directory: %s", pl.whyGone(dir))
	case !pl.stat.Mode.IsDir():
		return Host{}, fmt.Errorf("working directory: %s is not a directory", dir)
	}
	if h.Dir = wd; wd != "" {
		if link := h.PlantedLink(&Path{Path: pl.path, Links: pl.links}); link != "" {
			return Host{}, fmt.Errorf("the link %s, which a command may have put there, leads to %s; if that is meant, name that place itself", link, pl.path)
		}
	}
	h.Dir = pl.path
	return h, nil
}

// ThisSystem is this system as policies call it.
func ThisSystem() string {
	if runtime.GOOS == "darwin" {
		return "macos"
	}
	return runtime.GOOS
}

// check says what is wrong with a Host.
func (h *Host) check() error {
	whole := path.IsAbs(h.Dir) && path.Clean(h.Dir) == h.Dir && path.IsAbs(cmp.Or(h.Home, "/")) && path.IsAbs(cmp.Or(h.TempDir, "/"))
	if !whole || !slices.Contains(systems, h.OS) || h.Lstat == nil || h.Readlink == nil {
		return fmt.Errorf("OS %q, in %q, with the home directory %q and %q: linux or macos, absolute paths, the first one clean, Lstat and Readlink are needed",
			h.OS, h.Dir, h.Home, h.TempDir)
	}
	return nil
}

// workingDirectory is getcwd(3). $PWD is not asked: it may be spelled through
// symbolic links, and it is the caller's word.
func workingDirectory() (string, error) {
	dir, err := syscall.Getwd()
	if err == syscall.ENOENT || err == nil && !strings.HasPrefix(dir, "/") {
		return "", ErrNoDirectory
	}
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	return dir, nil
}

// ReadFile is Host.ReadFile for the running system, and what DecodeFile reads with:
// regular files of at most MaxFileSize bytes.
func ReadFile(name string) ([]byte, error) {
	if name == "/proc/self/mountinfo" { // the kernel's own: thousands of mounts take more
		return files.Read(name, 64*MaxFileSize)
	}
	return files.Read(name, MaxFileSize)
}

// spelled is where a path leads, in the kernel's spelling.
func (h *Host) spelled(p string) (place, error) {
	return newWalker(h, 8).spelled(p)
}

// PasswdHome is the home directory that the user database has for the real user of this
// process, whatever HOME says. For who is not in it, it is what HOME says, or "".
func PasswdHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil || !path.IsAbs(u.HomeDir) {
		return ""
	}
	return path.Clean(u.HomeDir)
}

// Getenv is the value of a variable in the caller's environment, or "". Of
// two with one name the first counts, as for getenv(3).
func (h *Host) Getenv(name string) string {
	for _, e := range h.Env {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:]
		}
	}
	return ""
}

// Absolute is the absolute path of a file that the caller names. A ".." in it stays: it
// is the file system's, behind links, and PWD, which may have some, is not asked.
func Absolute(file string) (string, error) {
	if path.IsAbs(file) {
		return file, nil
	}
	wd, err := workingDirectory()
	return wd + "/" + file, err
}

// Follow gives where an absolute path leads, which need not exist, and the links on
// the way there. A ".." is the file system's.
func (h *Host) Follow(p string) Path {
	real, links, _, _ := h.Trail(p)
	return Path{Path: real, Links: links}
}

// ConfigHome is $XDG_CONFIG_HOME, ~/.config by default, and "" without a home
// directory.
func (h *Host) ConfigHome() string { return h.xdg("XDG_CONFIG_HOME", ".config") }

// StateHome is $XDG_STATE_HOME, ~/.local/state by default, and "" without a home
// directory.
func (h *Host) StateHome() string { return h.xdg("XDG_STATE_HOME", ".local/state") }

// xdg gives a directory of the XDG base directory specification. Relative
// values are to be ignored, the specification says.
func (h *Host) xdg(name, below string) string {
	if v := h.Getenv(name); path.IsAbs(v) {
		return v
	}
	if h.Home == "" {
		return ""
	}
	return path.Join(h.Home, below)
}

// ErrNoDirectory says that the process's working directory has been deleted,
// or lies outside what it can see.
var ErrNoDirectory = errors.New("the working directory does not exist any more (-C DIR names another)")

// Within reports whether p is dir or lies below it.
func Within(p, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// Short writes a canonical path as a rule may: from the working directory, or the
// home directory.
func (r *Resolved) Short(p string) string {
	switch {
	case p == r.Dir:
		return "."
	case r.Dir != "/" && Within(p, r.Dir):
		p = "./" + p[len(r.Dir)+1:]
	case r.Home != "" && r.Home != "/" && p != r.Home && Within(p, r.Home):
		p = "~" + p[len(r.Home):]
	}
	return strings.ReplaceAll(p, "$", "$$")
}

// Foreign makes a host of another system, h.OS, out of this one, for printing a
// profile that is to be used there. Only the home directory and the working
// directory are looked at; all other paths count as directories, but for the
// symbolic links that every macOS has, for devices, and for the resolver's socket.
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
		case path == "/private/var/run/mDNSResponder":
			return Stat{Mode: fs.ModeSocket}, nil
		case strings.HasPrefix(path, "/dev/") && !slices.Contains([]string{"/dev/fd", "/dev/pts", "/dev/shm"}, path):
			return Stat{Mode: fs.ModeDevice | fs.ModeCharDevice}, nil
		}
		return Stat{Mode: fs.ModeDir}, nil
	}
	// What this machine has in a directory says nothing about the other.
	h.ReadDir = func(path string) ([]fs.DirEntry, error) {
		if known(path) {
			return here.ReadDir(path)
		}
		return nil, nil
	}
	h.ReadSome = nil
	h.Readlink = func(path string) (string, error) {
		if l := links[path]; l != "" {
			return l, nil
		}
		return here.Readlink(path)
	}
	return h
}
