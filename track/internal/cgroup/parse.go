package cgroup

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/procfs"
)

// ErrNone says that there is no control group of version 2 to be found.
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

// parsePath reads /proc/PID/cgroup (cgroups(7)) and gives the path of the group
// in the version 2 hierarchy: the line "0::PATH".
func parsePath(text string) (string, error) {
	for line := range strings.Lines(text) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			p = strings.TrimSuffix(p, " (deleted)")
			if !strings.HasPrefix(p, "/") {
				return "", fmt.Errorf("control group path %q is not absolute", p)
			}
			return p, nil
		}
	}
	return "", ErrNone
}

// dirsOf gives the directories of a group and of its ancestors that are visible
// below a cgroup2 mount, nearest first. They are not always at /sys/fs/cgroup.
func dirsOf(group, mountinfo string) []string {
	if strings.Contains(group, "/../") || strings.HasSuffix(group, "/..") {
		return nil // outside our cgroup namespace: see cgroup_namespaces(7)
	}
	var dirs []string
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
	return dirs
}

// number reads one line of a file such as cgroup.events.
func number(text, key string) (int, error) {
	for line := range strings.Lines(text) {
		if k, v, _ := strings.Cut(strings.TrimSpace(line), " "); k == key {
			return strconv.Atoi(v)
		}
	}
	return 0, fmt.Errorf("no line %q", key)
}
