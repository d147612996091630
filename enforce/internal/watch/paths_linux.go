package watch

import (
	"cmp"
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

// find follows a path of the thread's from the directory that an argument is, or -1;
// ok is false where there is nothing to check: not even its directory is there, or it
// is no path at all.
func (l *look) find(fd int, raw string, follow bool) (t target, ok bool) {
	name, ok := l.absolute(fd, raw)
	for links := 0; ok && links < 9; links++ {
		short := strings.TrimRight(name, "/")
		follow = follow || short != name
		dir, base := path.Split(short)
		if base == "" || base == "." || base == ".." {
			return l.open(name)
		}
		in, there := l.dir("/" + strings.Trim(dir, "/"))
		if !there {
			return target{}, false
		}
		t = target{path: strings.TrimSuffix(in, "/") + "/" + base}
		at := l.root(t.path) + t.path
		var st unix.Stat_t
		if unix.Lstat(at, &st) != nil {
			return t, true
		}
		if !follow || st.Mode&unix.S_IFMT != unix.S_IFLNK {
			t.mode, t.exists = files.Mode(st.Mode).Type(), true
			return t, true
		}
		if end, there := l.open(t.path); there {
			return end, true
		}
		if name, _ = os.Readlink(at); name == "" { // it leads to what is missing
			return t, true
		}
		if name[0] != '/' {
			name = in + "/" + name
		}
	}
	return t, ok
}

// absolute writes a path as this process has to.
func (l *look) absolute(fd int, raw string) (string, bool) {
	if !strings.HasPrefix(raw, "/") {
		base := "/cwd"
		if n := int32(l.argument(fd)); fd >= 0 && n != unix.AT_FDCWD {
			base = "/fd/" + strconv.Itoa(int(n))
		}
		dir, err := os.Readlink(l.proc + base)
		if raw != "" {
			raw = "/" + raw
		}
		return cmp.Or(strings.TrimSuffix(dir, "/")+raw, "/"), err == nil && strings.HasPrefix(dir, "/")
	}
	for _, x := range [...][2]string{{"/proc/self/", "/"}, {"/proc/thread-self/", "/"}, {"/dev/fd/", "/fd/"},
		{"/dev/stdin", "/fd/0"}, {"/dev/stdout", "/fd/1"}, {"/dev/stderr", "/fd/2"}} {
		if rest, cut := strings.CutPrefix(raw, x[0]); cut {
			return l.proc + x[1] + rest, true
		}
	}
	return raw, true
}

// dir is the canonical name of a directory.
func (l *look) dir(name string) (string, bool) {
	if real, ok := l.r.dirs.Load(name); ok {
		return real.(string), true
	}
	t, ok := l.open(name)
	if ok && t.mode.IsDir() && !strings.HasPrefix(name, "/proc/") && l.root(t.path) == "" {
		l.r.dirs.Store(name, t.path)
	}
	return t.path, ok && t.mode.IsDir()
}

// open follows a path to the end.
func (l *look) open(name string) (target, bool) {
	fd, err := unix.Open(l.root(name)+name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return target{}, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return target{fork.PathOf(fd), files.Mode(st.Mode).Type(), err == nil}, err == nil
}

// root is where an absolute path is looked up.
func (l *look) root(name string) string {
	if l.r.world.Mounts.PrivateIn(name) == "" {
		return ""
	}
	return l.proc + "/root"
}

// interpreter is what the program names, or "", and whether that is a loader, which names
// none. The command may put another file, or a link, in its place: what is there then is
// neither waited for nor followed.
func (l *look) interpreter() (next string, loader bool) {
	root, err := unix.Open(l.proc+"/root", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(root, l.Act.Path, &how)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", false
	}
	return program.Interpreter(file(fd))
}

// file is an open one. An os.File would ask whether it can be waited for.
type file int

func (f file) ReadAt(b []byte, at int64) (int, error) { return unix.Pread(int(f), b, at) }
