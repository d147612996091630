package track

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

// Control groups, version 2: where one can be made (ownCgroupDirs), made, opened again
// by path and inode, and removed. cgroupkill_linux.go ends what is in one;
// scope_linux.go gets one from the user's systemd where none can be made.

// cgroup is an open control group, version 2.
type cgroup struct {
	ref CgroupRef
	fd  int
}

// ownCgroupDirs lists where a group of ours could be made: below the group of
// this process, or below an ancestor of that, nearest first. To move a process
// into it, the kernel wants write access to cgroup.procs of the nearest common
// ancestor, which is that very directory.
func ownCgroupDirs() ([]string, error) {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	own, err := parseSelfCgroup(f)
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	dirs := cgroupDirs(own, cgroupMounts(mounts))
	if len(dirs) == 0 {
		return nil, errNoCgroup2
	}
	return dirs, nil
}

// findCgroupParent gives the nearest directory that a group can be made in, by
// making one and removing it again: neither modes nor access(2) know of
// Landlock, of read-only mounts or of limits on the number of groups.
func findCgroupParent(probe string) (string, error) {
	dirs, err := ownCgroupDirs()
	if err != nil {
		return "", err
	}
	first := error(nil)
	for _, d := range dirs {
		g, err := makeCgroup(d, probe)
		if err == nil {
			err = g.remove()
			g.close()
		}
		if err == nil {
			return d, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

// makeCgroup makes the group dir/name.
func makeCgroup(dir, name string) (*cgroup, error) {
	if err := unix.Faccessat(unix.AT_FDCWD, filepath.Join(dir, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS); err != nil {
		return nil, &os.PathError{Op: "write", Path: filepath.Join(dir, "cgroup.procs"), Err: err}
	}
	path := filepath.Join(dir, name)
	if err := unix.Mkdir(path, 0o755); err != nil {
		return nil, &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	g, err := openCgroup(path)
	if err != nil {
		_ = unix.Rmdir(path)
		return nil, err
	}
	// In a threaded subtree a new group can't take processes: see
	// cgroups(7), "Thread mode".
	if b, err := g.read("cgroup.type"); err == nil && !bytes.HasPrefix(b, []byte("domain\n")) {
		err := fmt.Errorf("%s: a group of type %q takes no processes", path, bytes.TrimSpace(b))
		return nil, errors.Join(err, g.remove())
	}
	return g, nil
}

// openCgroup opens the directory of a group.
func openCgroup(path string) (*cgroup, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var sfs unix.Statfs_t
	var st unix.Stat_t
	if err = unix.Fstatfs(fd, &sfs); err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && sfs.Type != unix.CGROUP2_SUPER_MAGIC {
		err = errNoCgroup2
	}
	if err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &cgroup{ref: CgroupRef{Path: path, Inode: st.Ino}, fd: fd}, nil
}

// reopenCgroup opens the group that ref means; fs.ErrNotExist if it is no more
// or if there is another one in its place.
func reopenCgroup(ref *CgroupRef) (*cgroup, error) {
	g, err := openCgroup(ref.Path)
	if err != nil {
		return nil, err
	}
	if g.ref.Inode != ref.Inode {
		g.close()
		return nil, &os.PathError{Op: "open", Path: ref.Path, Err: fs.ErrNotExist}
	}
	g.ref.Unit = ref.Unit
	return g, nil
}

func (g *cgroup) close() { unix.Close(g.fd) }

// open opens one of the group's files.
func (g *cgroup) open(name string, flags int) (*os.File, error) {
	path := filepath.Join(g.ref.Path, name)
	fd, err := unix.Openat(g.fd, name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (g *cgroup) read(name string) ([]byte, error) {
	f, err := g.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 256)
	n, err := f.Read(b)
	return b[:max(n, 0)], err
}

func (g *cgroup) write(name, text string) error {
	f, err := g.open(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// pids lists the members of the group and of those below it.
func (g *cgroup) pids() ([]int, error) {
	var pids []int
	err := filepath.WalkDir(g.ref.Path, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.Name() != "cgroup.procs" {
			return nil
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

// remove removes the group and those that members made below it. An empty
// group can be busy for a moment while its last processes are buried.
func (g *cgroup) remove() error {
	if g.ref.Unit != "" {
		return nil // systemd's to remove, and it does when the last member has ended
	}
	for try := 0; ; try++ {
		err := removeGroups(g.ref.Path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if try == 50 || !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(time.Duration(min(try, 10)) * time.Millisecond)
	}
}

func removeGroups(path string) error {
	err := unix.Rmdir(path)
	if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
		if err != nil {
			return &os.PathError{Op: "rmdir", Path: path, Err: err}
		}
		return nil
	}
	subs, _ := os.ReadDir(path)
	for _, d := range subs {
		if d.IsDir() {
			if err := removeGroups(filepath.Join(path, d.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(path); err != nil {
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}
