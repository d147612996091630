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

// Group is a control group that holds a session.
type Group struct {
	Path  string `json:"path"`           // its directory, absolute
	Inode uint64 `json:"inode"`          // of that directory: a later group at the same path is another one
	Unit  string `json:"unit,omitempty"` // the systemd user unit that owns it, or ""
}

// Name is the name of a session's own group.
func Name(id string) string { return "zsbx-" + id }

// scopeName is the name of a session's systemd unit, and of its group.
func scopeName(id string) string { return "zsbx-" + id + ".scope" }

// Of reports whether this can be the group of session id. A record
// that was tampered with could name any group of the user's.
func (g *Group) Of(id string) bool {
	base := path.Base(g.Path)
	return path.IsAbs(g.Path) && path.Clean(g.Path) == g.Path && (base == Name(id) || base == scopeName(id))
}

// dirsOf gives the directories of a group of version 2 and of its ancestors that are
// visible below a cgroup2 mount, nearest first: they are not always at /sys/fs/cgroup.
// The group is that of the line "0::PATH" in a process's file (cgroups(7)).
func dirsOf(file, mountinfo string) (dirs []string, _ error) {
	_, group, _ := strings.Cut("\n"+file, "\n0::")
	group, _, _ = strings.Cut(group, "\n")
	group = strings.TrimSuffix(group, " (deleted)")
	if !path.IsAbs(group) || strings.Contains(group+"/", "/../") { // outside our cgroup namespace: cgroup_namespaces(7)
		return nil, ErrNone
	}
	mounts := procfs.Mounts(mountinfo)
	for i := len(mounts) - 1; i >= 0; i-- { // a later mount lies on top
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

// Limits bound what all processes of a session have together, by a control
// group (cgroups(7), version 2) of the session's own, whatever tracks it. The
// keeper is not in it. The zero value bounds nothing. They hold only for a
// command that is confined: another one owns its group and can lift them.
type Limits struct {
	Memory int64 // bytes, of which none go to swap; 0 for no limit
	Pids   int64 // processes and threads at a time
	CPU    int64 // thousandths of one processor's time
}

// setting is a file of a control group and what bounds it.
type setting struct {
	file, text string
	controller string
	property   string // of a systemd unit, a number: org.freedesktop.systemd1(5)
	value      uint64
	optional   bool // the file is missing where there is nothing to bound
}

// settings are what the limits are to the kernel. The period in which that of processors
// is kept is the kernel's default, 0.1 s.
func (l Limits) settings() []setting {
	limited := map[string]bool{"memory": l.Memory > 0, "pids": l.Pids > 0, "cpu": l.CPU > 0}
	return slices.DeleteFunc([]setting{
		{"memory.max", fmt.Sprint(l.Memory), "memory", "MemoryMax", uint64(l.Memory), false},
		{"memory.swap.max", "0", "memory", "MemorySwapMax", 0, true}, // no swap in this kernel, or not accounted
		{"pids.max", fmt.Sprint(l.Pids), "pids", "TasksMax", uint64(l.Pids), false},
		{"cpu.max", fmt.Sprint(l.CPU * 100), "cpu", "CPUQuotaPerSecUSec", uint64(l.CPU) * 1000, false},
	}, func(s setting) bool { return !limited[s.controller] })
}
