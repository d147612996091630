package host

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/syntax"
)

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

func lstat(name string) (Stat, error) {
	st, err := files.Lstat(name)
	return Stat{Mode: st.Mode, ID: FileID(st.ID), Nlink: st.Nlink, UID: st.UID}, err
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

// PasswdHome returns the home directory that the user database has for the real user of
// this process, whatever HOME says. For a user who is not in it, that is HOME, or "".
func PasswdHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil || !path.IsAbs(u.HomeDir) {
		return ""
	}
	return path.Clean(u.HomeDir)
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

// ErrNoDirectory says that the process's working directory has been deleted, or is outside
// what it can see.
var ErrNoDirectory = errors.New("the working directory does not exist any more (-C DIR names another)")
