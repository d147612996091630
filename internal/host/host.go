package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/syntax"
)

// Host is the machine as zsbx sees it: what decides about paths looks at the machine only
// through it. ThisHost fills it from the running system; tests fill it from tables. Several goroutines may
// call Lstat, ReadDir and CountsDirs at once.
type Host struct {
	OS      string   // "linux" or "macos"
	Dir     string   // the command's working directory, absolute and canonical
	Home    string   // the user's home directory; "" if it is not known
	TempDir string   // the session's private temporary directory; "" for none
	Env     []string // the caller's environment, NAME=VALUE
	Program string   // the file of this program itself; "" if it is not known
	UID     uint32   // the user, who owns what the command makes

	Lstat    func(path string) (Stat, error)                 // as lstat(2)
	Readlink func(path string) (string, error)               // as readlink(2)
	ReadDir  func(path string, n int) ([]fs.DirEntry, error) // the first n entries, or all if n is -1
	ReadFile func(path string) ([]byte, error)               // small files: git's pointers to its directories

	// CountsDirs reports whether in the file system of a directory Stat.Nlink is two more than the
	// number of directories in one. nil is for not.
	CountsDirs func(dir string) bool

	walker *Walker // what one Resolve has seen so far; nil otherwise
}

// Stat is the part of the result of lstat(2) that a policy needs.
type Stat struct {
	Mode  fs.FileMode
	ID    FileID
	Nlink uint64 // how many names the inode has (st_nlink, inode(7)); 0 if unknown
	UID   uint32 // the owner
}

// FileID identifies an inode while the machine runs, so that what was resolved can be recognised
// when it is opened.
type FileID struct{ Dev, Ino uint64 }

func lstat(name string) (Stat, error) {
	st, err := files.Lstat(name)
	return Stat{Mode: st.Mode, ID: FileID(st.ID), Nlink: st.Nlink, UID: st.UID}, err
}

// ThisHost describes the running system, with the process's own working
// directory, home directory and environment. TempDir is left empty.
func ThisHost() (Host, error) { return HostIn("") }

// HostIn is ThisHost with another working directory for the command; "" is
// the process's own. A relative one is taken from that. It is an error if the
// directory does not exist.
func HostIn(dir string) (Host, error) {
	h := Host{Env: os.Environ(), UID: uint32(os.Geteuid()), ReadDir: files.List, ReadFile: ReadFile}
	h.Lstat = lstat
	h.Readlink = os.Readlink
	h.CountsDirs = files.CountsDirs
	h.OS = syntax.ThisSystem()
	h.Program, _ = os.Executable() // which Go's runtime knows already
	h.Home = path.Clean(os.Getenv("HOME"))
	if !path.IsAbs(h.Home) {
		h.Home = PasswdHome()
	}
	wd, err := workingDirectory()
	if !path.IsAbs(dir) {
		if err != nil {
			return Host{}, err
		}
		if dir == "" || dir == "." {
			h.Dir = wd // what the kernel returns is canonical
			return h, nil
		}
		dir = wd + "/" + dir
	}
	pl, err := h.Spelled(dir)
	switch {
	case err != nil:
		return Host{}, fmt.Errorf("working directory %s: %w", dir, err)
	case pl.Gone != "":
		return Host{}, fmt.Errorf("working directory: %s", pl.WhyGone(dir))
	case !pl.Stat.Mode.IsDir():
		return Host{}, fmt.Errorf("working directory: %s is not a directory", dir)
	}
	h.Dir = wd
	if wd != "" {
		if link := h.PlantedLink(pl.Path, pl.Links); link != "" {
			return Host{}, fmt.Errorf("the link %s, which a command may have put there, leads to %s; "+
				"if you mean that, name that place itself", link, pl.Path)
		}
	}
	h.Dir = pl.Path
	return h, nil
}

// Check returns what is wrong with a Host.
func (h *Host) Check() error {
	whole := path.IsAbs(h.Dir) && path.Clean(h.Dir) == h.Dir
	whole = whole && path.IsAbs(cmp.Or(h.Home, "/")) && path.IsAbs(cmp.Or(h.TempDir, "/"))
	if !whole || !slices.Contains(syntax.Systems, h.OS) || h.Lstat == nil || h.Readlink == nil {
		return fmt.Errorf("OS %q, in %q, with the home directory %q and %q: "+
			"linux or macos, absolute paths, the first one clean, Lstat and Readlink are needed",
			h.OS, h.Dir, h.Home, h.TempDir)
	}
	return nil
}

// workingDirectory is getcwd(3). $PWD is not used: it may lead through symbolic links, and
// the caller may have set it to anything.
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

// maxFileSize is the most that ReadFile reads of a file.
const maxFileSize = 1 << 20

// ReadFile is Host.ReadFile for the running system. It reads regular files of at most
// maxFileSize bytes.
func ReadFile(name string) ([]byte, error) {
	if name == "/proc/self/mountinfo" { // from the kernel: thousands of mounts need more
		return files.Read(name, 64*maxFileSize)
	}
	return files.Read(name, maxFileSize)
}

// Spelled returns where a path leads, spelled as on disk.
func (h *Host) Spelled(p string) (Walked, error) {
	return newWalker(h, 8).Spelled(p)
}

// PasswdHome returns the home directory that the user database has for the real user of
// this process, whatever HOME says. For a user who is not in it, that is HOME, or "".
func PasswdHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil || !path.IsAbs(u.HomeDir) {
		return ""
	}
	return path.Clean(u.HomeDir)
}

// Getenv returns the value of a variable in the caller's environment, or "". Of two with
// the same name the first counts, as for getenv(3).
func (h *Host) Getenv(name string) string {
	for _, e := range h.Env {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:]
		}
	}
	return ""
}

// Absolute returns the absolute path of a file that the caller names. A ".." in it stays,
// for the file system to follow. PWD is not used, because it may lead through links.
func Absolute(file string) (string, error) {
	if path.IsAbs(file) {
		return file, nil
	}
	wd, err := workingDirectory()
	return wd + "/" + file, err
}

// ConfigHome returns $XDG_CONFIG_HOME, by default ~/.config, or "" without a home
// directory.
func (h *Host) ConfigHome() string { return h.xdg("XDG_CONFIG_HOME", ".config") }

// StateHome returns $XDG_STATE_HOME, by default ~/.local/state, or "" without a home
// directory.
func (h *Host) StateHome() string { return h.xdg("XDG_STATE_HOME", ".local/state") }

// xdg returns a directory of the XDG base directory specification, which says that
// relative values are to be ignored.
func (h *Host) xdg(name, below string) string {
	if v := h.Getenv(name); path.IsAbs(v) {
		return v
	}
	if h.Home == "" {
		return ""
	}
	return path.Join(h.Home, below)
}

// ErrNoDirectory says that the process's working directory has been deleted, or is outside
// what it can see.
var ErrNoDirectory = errors.New("the working directory does not exist any more (-C DIR names another)")

// Within reports whether p is dir or is below it.
func Within(p, dir string) bool {
	n := len(dir)
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	return len(p) >= n && (len(p) == n || p[n] == '/') && p[:n] == dir
}

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
