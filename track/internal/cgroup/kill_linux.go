package cgroup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
)

// Kill sends SIGKILL to all members, where the kernel can (cgroup.kill, Linux 5.14), and
// reports whether one still lives: then it is to be called again. Nothing is left of a
// group that is gone, as systemd removes a scope that nothing lives in.
func (g *Group) Kill() (populated bool, err error) {
	err = g.Write("cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) {
		err = g.Write("cgroup.freeze", "0") // what is frozen does not die of a signal there
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
