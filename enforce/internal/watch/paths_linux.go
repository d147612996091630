package watch

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/program"
)

// The command's paths are looked up in this process's mount namespace: the command's
// differs in what is covered, which the plan knows, and in its private directories,
// which are looked at through the command's own root.

// target is what a path leads to.
type target struct {
	path   string // canonical; of what is missing, its name in its directory
	mode   fs.FileMode
	exists bool
}

func process(tid int) string { return "/proc/" + strconv.Itoa(tid) }

// find follows a path of the thread's from the directory that an argument is; ok is
// false where there is nothing to check: not even its directory is there, or it is no
// path at all.
func (l *look) find(fd int, name string, follow bool) (t target, ok bool) {
	in, own := "/", [...][2]string{{"/proc/self/", "/"}, {"/proc/thread-self/", "/"}, {"/dev/fd/", "/fd/"}}
	if !strings.HasPrefix(name, "/") {
		base := "/cwd"
		if fd != cwd && int32(l.args[fd]) != unix.AT_FDCWD {
			base = "/fd/" + strconv.Itoa(int(int32(l.args[fd])))
		}
		if in, _ = os.Readlink(l.proc + base); !strings.HasPrefix(in, "/") {
			return t, false
		}
	}
	for range 40 { // links
		for _, x := range own {
			if rest, cut := strings.CutPrefix(name, x[0]); cut {
				name = l.proc + x[1] + rest
			}
		}
		if !strings.HasPrefix(name, "/") {
			name = in + "/" + name
		}
		short := strings.TrimRight(name, "/")
		follow = follow || short != name
		dir, base := path.Split(short)
		if base == "" || base == "." || base == ".." {
			t = target{l.dir(name), fs.ModeDir, true}
			return t, t.path != ""
		}
		if in = l.dir("/" + strings.Trim(dir, "/")); in == "" {
			return t, false
		}
		t = target{path: strings.TrimSuffix(in, "/") + "/" + base}
		at := l.root(t.path) + t.path
		var st unix.Stat_t
		if unix.Lstat(at, &st) != nil {
			break
		}
		if t.mode = files.Mode(st.Mode).Type(); !follow || t.mode != fs.ModeSymlink {
			t.exists = true
			break
		}
		if name, _ = os.Readlink(at); name == "" {
			break
		}
	}
	return t, true
}

// dir is the canonical name of a directory, "" for what is none.
func (l *look) dir(name string) string {
	if real, ok := l.r.dirs.Load(name); ok {
		return real.(string)
	}
	fd, err := unix.Open(l.root(name)+name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	real := fork.PathOf(fd)
	if !strings.HasPrefix(name, "/proc/") && l.root(real) == "" {
		l.r.dirs.Store(name, real)
	}
	return real
}

// root is where an absolute path is looked up.
func (l *look) root(name string) string {
	if l.r.world.Mounts.PrivateIn(name) == "" {
		return ""
	}
	return l.proc + "/root"
}

// interpreter is what the program names, or "", and whether that is a loader, which names
// none. The command may put another file in its place: only a regular one is read.
func (l *look) interpreter() (next string, loader bool) {
	fd, err := unix.Open(l.root(l.Act.Path)+l.Act.Path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", false
	}
	f, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", false
	}
	defer f.Close()
	return program.Interpreter(f)
}
