package host

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

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

	// Failed is told why a file could not be read that was not read by the functions above. It may be nil.
	Failed func(error)

	walker *Walker // what one resolution has seen so far; nil otherwise
}

// Stat is what zsbx needs of the result of lstat(2).
type Stat struct {
	Mode  fs.FileMode
	ID    FileID
	Nlink uint64 // how many names the inode has (st_nlink, inode(7)); 0 if unknown
	UID   uint32 // the owner
}

// FileID identifies an inode while the machine runs, so that what was resolved can be recognised
// when it is opened.
type FileID struct{ Dev, Ino uint64 }

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

// Within reports whether p is dir or is below it.
func Within(p, dir string) bool {
	n := len(dir)
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	return len(p) >= n && (len(p) == n || p[n] == '/') && p[:n] == dir
}
