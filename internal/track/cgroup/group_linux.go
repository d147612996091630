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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// This file makes and removes groups and kills what is in them. Parent finds out where one can
// be made. scope_linux.go gets one from the user's systemd.

// dirs returns the directories in which a group could be made, nearest first: the group in a
// file of proc(5) and its ancestors. Moving a process into the new group needs write access to
// cgroup.procs in the nearest common ancestor, which is that directory.
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

// Parent returns the nearest directory in which a group can be made and limited. It makes one
// and removes it again, because modes and access(2) don't reflect Landlock, read-only mounts or
// limits on the number of groups.
func Parent(l Limits) (string, error) {
	dirs, err := dirs("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	var first error
	for _, d := range dirs {
		g, err := Make(d, fmt.Sprintf("zsbx-probe-%x", rand.Uint64()))
		if err == nil {
			err = errors.Join(g.Limit(l), g.Remove())
			if err == nil {
				return d, nil
			}
		}
		first = cmp.Or(first, err)
	}
	return "", first
}

func Make(dir, name string) (*Group, error) {
	procs := filepath.Join(dir, "cgroup.procs")
	path := filepath.Join(dir, name)
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

// There reports whether the group still exists, and is not another one at the same path.
func (g *Group) There() bool {
	now, err := at(g.Path)
	return err == nil && now.Inode == g.Inode
}

func (g *Group) OpenFile(name string, flags int) (*os.File, error) {
	path := filepath.Join(g.Path, name)
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// read returns the content of one of the group's files, or "" if it can't be read.
func (g *Group) read(name string) string {
	b, _ := files.ReadInto(filepath.Join(g.Path, name), make([]byte, 4096))
	return string(b)
}

func (g *Group) Write(name, text string) error {
	f, err := g.OpenFile(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// subgroups returns the directories of the group and of those that its members made below it,
// parents first.
func (g *Group) subgroups() (dirs []string) {
	_ = filepath.WalkDir(g.Path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // some may vanish meanwhile
	})
	return dirs
}

// Pids returns the members of the group and of those below it.
func (g *Group) Pids() (pids []int) {
	for _, dir := range g.subgroups() {
		// A threaded group's members are in its parent's file.
		b, _ := files.ReadInto(filepath.Join(dir, "cgroup.procs"), make([]byte, 4096))
		for f := range bytes.FieldsSeq(b) {
			// 0 is a process in another PID namespace, which has no number here.
			if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Remove removes the group and those below it. An empty group can be busy for a moment after
// its last processes ended. systemd removes its own groups itself.
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

// Limit sets the group's limits. If the group lacks a controller, Limit enables it in the
// parent, which does not affect sibling groups, since they have no limits. The kernel refuses
// that if processes are in the parent (cgroups(7), "no internal processes") or if it lacks
// the controller.
func (g *Group) Limit(l Limits) error {
	parent := &Group{Path: filepath.Dir(g.Path)}
	for _, s := range l.settings() {
		// If this fails, the controller may be on already.
		off := parent.Write("cgroup.subtree_control", "+"+s.controller)
		if err := g.Write(s.file, s.text); err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("the controller for %s: %w", s.controller, cmp.Or(off, err))
		}
	}
	return nil
}

// limited checks that the user's service manager has limited the group.
func (g *Group) limited(l Limits) error {
	for _, s := range l.settings() {
		now := g.read(s.file)
		if !s.optional && now == "" || strings.HasPrefix(now, "max") {
			return fmt.Errorf("the user's service manager does not limit %s", s.controller)
		}
	}
	return nil
}

// Kill sends SIGKILL to all members if the kernel can (cgroup.kill, Linux 5.14), and reports
// whether one still lives. The caller then calls it again. A group that is gone has no members:
// systemd removes a scope when it is empty.
func (g *Group) Kill() (populated bool, err error) {
	err = g.Write("cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) {
		err = g.Write("cgroup.freeze", "0") // without cgroup.kill, signals don't kill frozen processes
	}
	if err != nil && !gone(err) {
		return true, err
	}
	b, err := files.ReadInto(filepath.Join(g.Path, "cgroup.events"), make([]byte, 4096))
	if gone(err) {
		return false, nil
	}
	return !strings.Contains(string(b), "populated 0\n"), err
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }
