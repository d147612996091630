package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A group is made where one can be (Dirs, Nearest), opened again by path and inode,
// and removed. kill_linux.go ends what is in one; scope_linux.go gets one from the
// user's systemd.

// Group is an open control group.
type Group struct {
	Ref
	fd int
}

// Dirs lists where a group could be made: below the group of this process, or
// below an ancestor of that, nearest first. To move a process into it, the kernel
// wants write access to cgroup.procs of the nearest common ancestor, which is that
// very directory.
func Dirs() ([]string, error) {
	dirs, err := dirs("/proc/self/cgroup")
	if err == nil && len(dirs) == 0 {
		err = ErrNone
	}
	return dirs, err
}

// dirs lists the directories of the group that a file of proc(5) names, and of its
// ancestors.
func dirs(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	group, err := parsePath(string(b))
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return dirsOf(group, string(mounts)), err
}

// Nearest makes a group in the nearest directory where that can be done and use
// does not fail. Only doing it tells: neither modes nor access(2) know of Landlock,
// of read-only mounts or of limits on the number of groups.
func Nearest(name string, use func(*Group) error) (*Group, error) {
	dirs, err := Dirs()
	if err != nil {
		return nil, err
	}
	var first error
	for _, d := range dirs {
		g, err := Make(d, name)
		if err == nil {
			if err = use(g); err == nil {
				return g, nil
			}
			_ = g.Remove()
			g.Close()
		}
		if first == nil || errors.Is(first, errNoController) { // which says less than a refusal above
			first = err
		}
	}
	return nil, first
}

// Parent gives the nearest directory in which a group can be made and bounded, by
// making one and removing it again.
func Parent(name string, l Limits) (string, error) {
	g, err := Nearest(name, func(g *Group) error { return g.Limit(l) })
	if err != nil {
		return "", err
	}
	defer g.Close()
	return filepath.Dir(g.Path), g.Remove()
}

// Make makes the group dir/name.
func Make(dir, name string) (*Group, error) {
	procs, path := filepath.Join(dir, "cgroup.procs"), filepath.Join(dir, name)
	if err := unix.Faccessat(unix.AT_FDCWD, procs, unix.W_OK, unix.AT_EACCESS); err != nil {
		return nil, &os.PathError{Op: "write", Path: procs, Err: err}
	}
	if err := unix.Mkdir(path, 0o755); err != nil {
		return nil, &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	g, err := Open(path)
	if err != nil {
		_ = unix.Rmdir(path)
		return nil, err
	}
	// In a threaded subtree a new group can't take processes: see
	// cgroups(7), "Thread mode".
	if b, err := g.read("cgroup.type"); err == nil && !bytes.HasPrefix(b, []byte("domain\n")) {
		err := fmt.Errorf("%s: a group of type %q takes no processes", path, bytes.TrimSpace(b))
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// Open opens the directory of a group.
func Open(path string) (*Group, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var sfs unix.Statfs_t
	var st unix.Stat_t
	err = errors.Join(unix.Fstatfs(fd, &sfs), unix.Fstat(fd, &st))
	if err == nil && sfs.Type != unix.CGROUP2_SUPER_MAGIC {
		err = ErrNone
	}
	if err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Group{Ref: Ref{Path: path, Inode: st.Ino}, fd: fd}, nil
}

// Open opens the group that r means; fs.ErrNotExist if it is no more or if there
// is another one in its place.
func (r *Ref) Open() (*Group, error) {
	g, err := Open(r.Path)
	if err != nil {
		return nil, err
	}
	if g.Inode != r.Inode {
		g.Close()
		return nil, &os.PathError{Op: "open", Path: r.Path, Err: fs.ErrNotExist}
	}
	g.Unit = r.Unit
	return g, nil
}

// Close closes the descriptor, not the group.
func (g *Group) Close() { unix.Close(g.fd) }

// OpenFile opens one of the group's files.
func (g *Group) OpenFile(name string, flags int) (*os.File, error) {
	path := filepath.Join(g.Path, name)
	fd, err := unix.Openat(g.fd, name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (g *Group) read(name string) ([]byte, error) {
	f, err := g.OpenFile(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 256)
	n, err := f.Read(b)
	return b[:max(n, 0)], err
}

// Write writes one of the group's files.
func (g *Group) Write(name, text string) error {
	f, err := g.OpenFile(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Pids lists the members of the group and of those below it.
func (g *Group) Pids() ([]int, error) {
	var pids []int
	err := filepath.WalkDir(g.Path, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.Name() != "cgroup.procs" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil // the group went away, or is threaded: its processes show in the parent
		}
		for f := range bytes.FieldsSeq(b) {
			// 0 is a process of another PID namespace: it has no number here.
			if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids, err
}

// Remove removes the group and those that members made below it. An empty
// group can be busy for a moment while its last processes are buried.
func (g *Group) Remove() error {
	if g.Unit != "" {
		return nil // systemd's to remove, and it does when the last member has ended
	}
	for try := 0; ; try++ {
		err := removeAll(g.Path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if try == 50 || !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(time.Duration(min(try, 10)) * time.Millisecond)
	}
}

func removeAll(path string) error {
	err := unix.Rmdir(path)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		subs, _ := os.ReadDir(path)
		for _, d := range subs {
			if d.IsDir() {
				if err := removeAll(filepath.Join(path, d.Name())); err != nil {
					return err
				}
			}
		}
		err = unix.Rmdir(path)
	}
	if err != nil {
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}
