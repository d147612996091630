package trace

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/program"
)

// The command's paths are looked up in this process's mount namespace. The command's differs in
// two ways. The plan knows which paths are covered there. Private directories are looked up
// through the command's own root.

// target is the file that a path leads to.
type target struct {
	path    string // canonical; for a missing file, its directory's path and its name
	mode    fs.FileMode
	exists  bool
	private bool // other processes may find another file there
	reopen  bool // it was reached through a descriptor's name in /proc
	steady  bool // the command can't make its name lead elsewhere

	looked bool   // interpreter has read it, as a program
	next   string // its interpreter
	loader bool   // next is the loader of a dynamic program
}

func process(tid int) string { return "/proc/" + strconv.Itoa(tid) }

// find follows a path of the thread from the directory in an argument. ok is false if there is
// nothing to check: the directory is missing, or the name is no path.
func (l *look) find(fd int, name string, follow bool) (t target, ok bool) {
	if !strings.HasPrefix(name, "/") {
		base := "/cwd"
		if fd != cwd && int32(l.args[fd]) != unix.AT_FDCWD {
			base = "/fd/" + strconv.Itoa(int(int32(l.args[fd])))
		}
		in, _ := os.Readlink(l.proc + base)
		if !strings.HasPrefix(in, "/") {
			return t, false
		}
		name = in + "/" + name
	}
	return l.resolve(name, follow)
}

// resolve follows an absolute path name by name. It remembers directories on the way, and files
// whose names the command can't make lead elsewhere. Other names may become links, and programs
// outside may make missing files.
func (l *look) resolve(name string, follow bool) (t target, ok bool) {
	short := strings.TrimRight(name, "/")
	follow = follow || short != name
	if known, ok := l.r.found.Load(short); ok && follow {
		return known.(target), true
	}
	dir, base := path.Split(short)
	if base == "" {
		return target{path: "/", mode: fs.ModeDir, exists: true, steady: true}, true
	}
	const most = 200 // names and links, which take this process longer than the command
	l.steps++
	if l.steps > most {
		return t, false
	}
	in, _ := l.resolve(dir, true)
	if !in.mode.IsDir() {
		t.path = path.Join(in.path, base)
		return t, !in.exists && l.root(t.path) != "" // see unseen
	}
	t.path = path.Join(in.path, base)
	if t.path == "/proc/self" || t.path == "/proc/thread-self" {
		t.path = l.proc
	}
	root := l.root(t.path)
	t.private = in.private || root != "" || strings.HasPrefix(t.path, "/proc/")
	var st unix.Stat_t
	if unix.Lstat(root+t.path, &st) != nil {
		return t, true
	}
	t.mode = files.Mode(st.Mode).Type()
	t.exists = true
	t.steady = in.steady && l.r.fixed(in.path, fs.ModeDir)
	if follow && t.mode == fs.ModeSymlink {
		to, err := os.Readlink(root + t.path)
		if err != nil {
			return t, true // such as /proc/1/root
		}
		descriptor := path.Base(in.path) == "fd" && strings.HasPrefix(in.path, "/proc/")
		if descriptor && l.r.world.Reopens(to) && unix.Stat(root+t.path, &st) == nil {
			// This is so even if that path now has another file.
			return target{path: to, mode: files.Mode(st.Mode).Type(), exists: true, private: true, reopen: true}, true
		}
		if !strings.HasPrefix(to, "/") {
			to = in.path + "/" + to
		}
		end, ok := l.resolve(to, true)
		end.private = end.private || t.private
		end.steady = end.steady && t.steady
		return end, ok
	}
	if follow && !t.private && (t.steady || t.mode.IsDir() && t.path == short) {
		const many = 8192
		if l.r.stored.Add(1)%many == 0 {
			l.r.found.Clear() // limits the memory for it
		}
		l.r.found.Store(short, t)
	}
	return t, true
}

// fixed reports whether the command can't change a file, or a directory's entries.
func (r *Recorder) fixed(name string, mode fs.FileMode) bool {
	change := answer.Act{Op: answer.Open, Flags: answer.Write, Path: name, Mode: mode}
	return !r.imagine && r.world.Decide(&change).Verdict == answer.Refused
}

// root returns the root directory in which to look up an absolute path, "" for this process's.
func (l *look) root(name string) string {
	if l.r.world.Mounts.PrivateIn(name) == "" {
		return ""
	}
	return l.proc + "/root"
}

// unseen reports whether the path exists outside, while it is missing in a private directory of
// the command.
func (l *look) unseen() bool {
	var st unix.Stat_t
	if l.root(l.Act.Path) == "" || unix.Stat(l.Act.Path, &st) != nil {
		return false
	}
	l.Act.Mode = files.Mode(st.Mode).Type()
	return true
}

// interpreter returns the interpreter that the program names, or "", and whether that is a
// loader, which names none itself. It reads only a regular file, since the command may have
// replaced it.
func (l *look) interpreter() (next string, loader bool) {
	known, _ := l.r.found.Load(l.Act.Path)
	t, remembered := known.(target)
	if t.looked {
		return t.next, t.loader
	}
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
	t.next, t.loader = program.Interpreter(f)
	t.looked = st.Nlink == 1 && l.r.fixed(l.Act.Path, 0) // a hard link might be writable
	if t.looked && remembered {
		l.r.found.Store(l.Act.Path, t)
	}
	return t.next, t.loader
}
