package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/procfs"
)

var ErrNone = errors.New("no control groups of version 2")

// Group is a session's control group.
type Group struct {
	Path  string `json:"path"`           // its directory, absolute
	Inode uint64 `json:"inode"`          // of that directory; a later group at the same path has another
	Unit  string `json:"unit,omitempty"` // the systemd user unit that owns it, or ""
}

// Name returns the name of a session's own group.
func Name(id string) string { return "zsbx-" + id }

// scopeName returns the name of a session's systemd unit and of its group.
func scopeName(id string) string { return "zsbx-" + id + ".scope" }

// Of reports whether this can be the group of session id. A manipulated record could name any
// group of the user.
func (g *Group) Of(id string) bool {
	base := path.Base(g.Path)
	return path.IsAbs(g.Path) && path.Clean(g.Path) == g.Path && (base == Name(id) || base == scopeName(id))
}

// dirsOf returns the directories of a version 2 group and of its ancestors below a cgroup2
// mount, nearest first. The mount is not always at /sys/fs/cgroup. The group is in the line
// "0::PATH" of a process's file (cgroups(7)).
func dirsOf(file, mountinfo string) (dirs []string, _ error) {
	_, group, _ := strings.Cut("\n"+file, "\n0::")
	group, _, _ = strings.Cut(group, "\n")
	group = strings.TrimSuffix(group, " (deleted)")
	if !path.IsAbs(group) || strings.Contains(group+"/", "/../") { // outside our cgroup namespace: cgroup_namespaces(7)
		return nil, ErrNone
	}
	mounts := procfs.Mounts(mountinfo)
	for i := len(mounts) - 1; i >= 0; i-- { // a later mount is on top
		m := mounts[i]
		rel, ok := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(m.Root, "/"))
		if m.Type != "cgroup2" || !ok || rel != "" && rel[0] != '/' {
			continue
		}
		for p := path.Clean("/" + rel); ; p = path.Dir(p) {
			dirs = append(dirs, path.Join(m.Point, p))
			if p == "/" {
				break
			}
		}
	}
	if len(dirs) == 0 {
		return nil, ErrNone
	}
	return dirs, nil
}

// Limits are for all processes of a session together. They are set on a control group of the
// session (cgroups(7), version 2), whatever tracks it. The keeper is not in it. The zero value
// has no limits. They bind only a confined command: another one owns its group and can lift
// them.
type Limits struct {
	Memory int64 // bytes, of which none go to swap; 0 for no limit
	Pids   int64 // processes and threads at a time
	CPU    int64 // thousandths of one processor's time
}

// setting is a file of a control group, and the limit to write into it.
type setting struct {
	file, text string
	controller string
	property   string // of a systemd unit (org.freedesktop.systemd1(5)); its value is a number
	value      uint64
	optional   bool // the file may be missing
}

// settings returns the limits as the kernel takes them. The limit of processor time is for the
// kernel's default period, 0.1 s.
func (l Limits) settings() []setting {
	limited := map[string]bool{"memory": l.Memory > 0, "pids": l.Pids > 0, "cpu": l.CPU > 0}
	return slices.DeleteFunc([]setting{
		{"memory.max", fmt.Sprint(l.Memory), "memory", "MemoryMax", uint64(l.Memory), false},
		// This file is missing if the kernel has no swap or does not account it.
		{"memory.swap.max", "0", "memory", "MemorySwapMax", 0, true},
		{"pids.max", fmt.Sprint(l.Pids), "pids", "TasksMax", uint64(l.Pids), false},
		{"cpu.max", fmt.Sprint(l.CPU * 100), "cpu", "CPUQuotaPerSecUSec", uint64(l.CPU) * 1000, false},
	}, func(s setting) bool { return !limited[s.controller] })
}
