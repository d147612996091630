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

	mu   sync.Mutex
	real map[string]string // directories as they are written, and their canonical names
}

// target is what a path leads to.
type target struct {
	path   string // canonical; of what is missing, its name in its directory
	mode   fs.FileMode
	exists bool
	uid    uint32 // its owner
}

func process(tid int) string { return "/proc/" + strconv.Itoa(tid) }

// root is where an absolute path is looked up.
func (p *paths) root(tid int, name string) string {
	if p.mounts.PrivateIn(name) == "" {
		return ""
	}
	return process(tid) + "/root"
}

// find follows a path of a thread's; ok is false where there is nothing to check: not
// even its directory is there, or it is no path at all.
func (p *paths) find(tid, dirfd int, raw string, follow bool) (t target, ok bool) {
	name, ok := absolute(tid, dirfd, raw)
	for links := 0; ok && links < 9; links++ {
		short := strings.TrimRight(name, "/")
		follow = follow || short != name
		dir, base := path.Split(short)
		if base == "" || base == "." || base == ".." {
			return p.open(tid, name)
		}
		in, there := p.dir(tid, "/"+strings.Trim(dir, "/"))
		if !there {
			return target{}, false
		}
		t = target{path: strings.TrimSuffix(in, "/") + "/" + base}
		at := p.root(tid, t.path) + t.path
		var st unix.Stat_t
		if unix.Lstat(at, &st) != nil {
			return t, true
		}
		t.fill(&st)
		if !follow || t.mode&fs.ModeSymlink == 0 {
			return t, true
		}
		if end, there := p.open(tid, t.path); there {
			return end, true
		}
		t = target{path: t.path} // it leads to what is missing
		if name, _ = os.Readlink(at); name == "" {
			return t, true
		}
		if name[0] != '/' {
			name = in + "/" + name
		}
	}
	return t, ok
}

// absolute writes a path as this process has to.
func absolute(tid, dirfd int, raw string) (string, bool) {
	own := process(tid)
	if !strings.HasPrefix(raw, "/") {
		base := own + "/cwd"
		if dirfd != unix.AT_FDCWD {
			base = own + "/fd/" + strconv.Itoa(dirfd)
		}
		dir, err := os.Readlink(base)
		if raw != "" {
			raw = strings.TrimSuffix(dir, "/") + "/" + raw
		} else {
			raw = dir
		}
		return raw, err == nil && strings.HasPrefix(dir, "/")
	}
	for _, x := range [...][2]string{{"/proc/self/", "/"}, {"/proc/thread-self/", "/"}, {"/dev/fd/", "/fd/"},
		{"/dev/stdin", "/fd/0"}, {"/dev/stdout", "/fd/1"}, {"/dev/stderr", "/fd/2"}} {
		if rest, cut := strings.CutPrefix(raw, x[0]); cut {
			return own + x[1] + rest, true
		}
	}
	return raw, true
}

// dir is the canonical name of a directory.
func (p *paths) dir(tid int, name string) (string, bool) {
	p.mu.Lock()
	real, ok := p.real[name]
	p.mu.Unlock()
	if ok {
		return real, true
	}
	t, ok := p.open(tid, name)
	if !ok || !t.mode.IsDir() {
		return "", false
	}
	if !strings.HasPrefix(name, "/proc/") && p.mounts.PrivateIn(t.path) == "" {
		const most = 8192
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.real == nil || len(p.real) >= most {
			p.real = make(map[string]string)
		}
		p.real[name] = t.path
	}
	return t.path, true
}

// forget has directories looked at again.
func (p *paths) forget() {
	p.mu.Lock()
	p.real = nil
	p.mu.Unlock()
}

// open follows a path to the end.
func (p *paths) open(tid int, name string) (t target, ok bool) {
	fd, err := unix.Open(p.root(tid, name)+name, unix.O_PATH|unix.O_CLOEXEC, 0)
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

func (t *target) fill(st *unix.Stat_t) {
	t.exists, t.mode, t.uid = true, files.Mode(st.Mode).Type(), st.Uid
}
