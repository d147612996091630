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
		if t, there := l.open(name, follow); there {
			return t, true
		}
		dir, base := path.Split(short)
		in, there := l.open(dir, true)
		if !there || !in.mode.IsDir() {
			return target{}, false
		}
		t = target{path: path.Join(in.path, base)}
		if name, _ = os.Readlink(l.root(t.path) + t.path); name == "" { // else it leads to what is missing
			return t, true
		}
		if name[0] != '/' {
			name = in.path + "/" + name
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

// open follows a path, or does so but for a link at its end.
func (l *look) open(name string, follow bool) (target, bool) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Open(l.root(name)+name, flags, 0)
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
