package watch

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/internal/files"
)

// paths finds what the command's paths lead to, in this process's mount namespace:
// the command's differs in what is covered, which the plan knows, and in its private
// directories, which are looked at through the command's own root.
type paths struct {
	mounts *mounts.Plan

	real         cache[string] // directories as they are written, and their canonical names
	interpreters cache[version]
}

// cache remembers what was found out, up to a bound.
type cache[K comparable] struct {
	mu  sync.Mutex
	all map[K]string
}

func (c *cache[K]) get(k K) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.all[k]
	return s, ok
}

func (c *cache[K]) put(k K, s string) {
	const most = 8192
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= most {
		c.all = make(map[K]string)
	}
	c.all[k] = s
}

func (c *cache[K]) forget() {
	c.mu.Lock()
	c.all = nil
	c.mu.Unlock()
}

// target is what a path leads to.
type target struct {
	path    string // canonical; of what is missing, its name in its directory
	mode    fs.FileMode
	exists  bool
	version version
}

// version is a file as it was at one time: whoever writes to it changes its ctime.
type version struct {
	dev, ino uint64
	ctime    unix.Timespec
	uid      uint32
}

// find follows a path of a thread's; ok is false where there is nothing to check: not
// even its directory is there, or it is no path at all.
func (p *paths) find(tid, dirfd int, raw string, follow bool) (t target, ok bool) {
	name, ok := absolute(tid, dirfd, raw)
	if !ok {
		return t, false
	}
	for range 9 { // links to what is missing
		var next string
		if t, next, ok = p.lookup(tid, name, follow); next == "" {
			break
		}
		name = next
	}
	return t, ok
}

// absolute writes a path as this process has to.
func absolute(tid, dirfd int, raw string) (string, bool) {
	if raw == "" || raw[0] != '/' {
		base := process(tid) + "/cwd"
		if dirfd != unix.AT_FDCWD {
			base = process(tid) + "/fd/" + strconv.Itoa(dirfd)
		}
		dir, err := os.Readlink(base)
		if err != nil || dir == "" || dir[0] != '/' {
			return "", false
		}
		if raw == "" {
			return dir, true
		}
		return strings.TrimSuffix(dir, "/") + "/" + raw, true
	}
	for _, own := range [...]struct{ prefix, is string }{{"/proc/self/", "/"}, {"/proc/thread-self/", "/"}, {"/dev/fd/", "/fd/"},
		{"/dev/stdin", "/fd/0"}, {"/dev/stdout", "/fd/1"}, {"/dev/stderr", "/fd/2"}} {
		if rest, cut := strings.CutPrefix(raw, own.prefix); cut && (rest == "" || strings.HasSuffix(own.prefix, "/")) {
			return process(tid) + own.is + rest, true
		}
	}
	return raw, true
}

func process(tid int) string { return "/proc/" + strconv.Itoa(tid) }

// lookup looks at an absolute path; next is where a link leads that leads to nothing.
func (p *paths) lookup(tid int, name string, follow bool) (t target, next string, ok bool) {
	short := strings.TrimRight(name, "/")
	follow = follow || short != name
	dir, base := path.Split(short)
	if base == "" || base == "." || base == ".." {
		t, ok = p.open(tid, name, true)
		return t, "", ok
	}
	in, ok := p.dir(tid, "/"+strings.Trim(dir, "/"))
	if !ok {
		return t, "", false
	}
	t.path = strings.TrimSuffix(in, "/") + "/" + base
	var st unix.Stat_t
	if p.mounts.PrivateIn(t.path) != "" {
		f, there := p.open(tid, t.path, follow)
		if there {
			return f, "", true
		}
		return t, "", true
	}
	if unix.Lstat(t.path, &st) != nil {
		return t, "", true
	}
	if follow && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		if f, there := p.open(tid, t.path, true); there {
			return f, "", true
		}
		to, err := os.Readlink(t.path)
		if err != nil || to == "" {
			return t, "", true
		}
		if to[0] != '/' {
			to = in + "/" + to
		}
		return t, to, true
	}
	t.fill(&st)
	return t, "", true
}

// dir is the canonical name of a directory.
func (p *paths) dir(tid int, name string) (string, bool) {
	if real, ok := p.real.get(name); ok {
		return real, true
	}
	t, ok := p.open(tid, name, true)
	if !ok || !t.mode.IsDir() {
		return "", false
	}
	if !strings.HasPrefix(name, "/proc/") && p.mounts.PrivateIn(t.path) == "" {
		p.real.put(name, t.path)
	}
	return t.path, true
}

// open follows a path to the end.
func (p *paths) open(tid int, name string, follow bool) (t target, ok bool) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	var fd int
	var err error
	if p.mounts.PrivateIn(name) == "" {
		fd, err = unix.Open(name, flags, 0)
	} else {
		fd, err = openIn(process(tid)+"/root", name, flags, 0)
	}
	if err != nil {
		return t, false
	}
	defer unix.Close(fd)
	t.path = fork.PathOf(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		t.fill(&st)
	}
	return t, t.exists
}

// openIn opens a path in a root directory; resolve are flags of openat2(2).
func openIn(root, name string, flags, resolve int) (int, error) {
	at, err := unix.Open(root, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.Openat2(at, name, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | uint64(resolve)})
}

func (t *target) fill(st *unix.Stat_t) {
	t.exists, t.mode = true, files.Mode(st.Mode).Type()
	t.version = version{st.Dev, st.Ino, st.Ctim, st.Uid}
}
