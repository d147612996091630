package cgroup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// A group is made where one can be (Parent), known again by path and inode, and
// removed. kill_linux.go ends what is in one; scope_linux.go gets one from the
// user's systemd.

// dirs lists where a group could be made: below the group that a file of proc(5) names, or
// below an ancestor of that, nearest first. To move a process into it, the kernel
// wants write access to cgroup.procs of the nearest common ancestor, which is that
// very directory.
func dirs(file string) ([]string, error) {
	group, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return dirsOf(string(group), string(mounts))
}

// Parent gives the nearest directory in which a group can be made and bounded, by
// making one and removing it again. Only doing it tells: neither modes nor access(2)
// know of Landlock, of read-only mounts or of limits on the number of groups.
func Parent(l Limits) (string, error) {
	dirs, err := dirs("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	var first error
	for _, d := range dirs {
		g, err := Make(d, fmt.Sprintf("zsbx-probe-%x", rand.Uint64()))
		if err == nil {
			if err = errors.Join(g.Limit(l), g.Remove()); err == nil {
				return d, nil
			}
		}
		first = cmp.Or(first, err)
	}
	return "", first
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
	g, err := at(path)
	if err != nil {
		_ = unix.Rmdir(path)
	}
	return g, err
}

// at gives the group in a directory.
func at(path string) (*Group, error) {
	var sfs unix.Statfs_t
	var st unix.Stat_t
	err := errors.Join(unix.Statfs(path, &sfs), unix.Lstat(path, &st))
	if err == nil && (sfs.Type != unix.CGROUP2_SUPER_MAGIC || st.Mode&unix.S_IFMT != unix.S_IFDIR) {
		err = ErrNone
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Group{Path: path, Inode: st.Ino}, nil
}

// There reports whether the group is still there, and no other one in its place.
func (g *Group) There() bool {
	now, err := at(g.Path)
	return err == nil && now.Inode == g.Inode
}

// OpenFile opens one of the group's files.
func (g *Group) OpenFile(name string, flags int) (*os.File, error) {
	path := filepath.Join(g.Path, name)
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// read reads one of the group's files, "" if it can't be read.
func (g *Group) read(name string) string {
	b, _ := files.ReadInto(filepath.Join(g.Path, name), make([]byte, 4096))
	return string(b)
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

// subgroups lists the directories of the group and of those that members made below
// it, these last.
func (g *Group) subgroups() (dirs []string) {
	_ = filepath.WalkDir(g.Path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // some may go away meanwhile
	})
	return dirs
}

// Pids lists the members of the group and of those below it.
func (g *Group) Pids() (pids []int) {
	for _, dir := range g.subgroups() {
		b, _ := files.ReadInto(filepath.Join(dir, "cgroup.procs"), make([]byte, 4096)) // of a threaded one they show in the parent
		for f := range bytes.FieldsSeq(b) {
			// 0 is a process of another PID namespace: it has no number here.
			if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Remove removes the group and those below it. An empty group can be busy for a moment
// while its last processes are buried. What systemd owns it removes by itself.
func (g *Group) Remove() (err error) {
	for try := 0; try <= 50 && g.Unit == ""; try++ {
		err = nil
		for _, dir := range slices.Backward(g.subgroups()) {
			if e := unix.Rmdir(dir); e != nil && e != unix.ENOENT {
				err = &os.PathError{Op: "rmdir", Path: dir, Err: e}
			}
		}
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		proc.Pause(time.Duration(min(try, 10)) * time.Millisecond)
	}
	return err
}
