package track

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/zsbx/zsbx/internal/procfs"
)

// errNoCgroup2 says that there is no control group of version 2 to be found.
var errNoCgroup2 = errors.New("no control groups of version 2")

// parseSelfCgroup reads /proc/PID/cgroup (cgroups(7)) and gives the path of
// the group in the version 2 hierarchy: the line "0::PATH".
func parseSelfCgroup(r io.Reader) (string, error) {
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		if p, ok := strings.CutPrefix(sc.Text(), "0::"); ok {
			p = strings.TrimSuffix(p, " (deleted)")
			if !strings.HasPrefix(p, "/") {
				return "", fmt.Errorf("control group path %q is not absolute", p)
			}
			return p, nil
		}
	}
	if err := sc.Err(); err != nil {
		return "", err
	}
	return "", errNoCgroup2
}

// cgroupMount is a mounted cgroup2 file system.
type cgroupMount struct {
	Root  string // the group that is the root of the mount
	Point string // where it is mounted
}

// cgroupMounts reads /proc/PID/mountinfo and lists the cgroup2 mounts, in the order
// of the file: a later one may cover an earlier one. They are not always at
// /sys/fs/cgroup.
func cgroupMounts(mountinfo []byte) []cgroupMount {
	var ms []cgroupMount
	for _, m := range procfs.Mounts(string(mountinfo)) {
		if m.Type == "cgroup2" {
			ms = append(ms, cgroupMount{Root: m.Root, Point: m.Point})
		}
	}
	return ms
}

// cgroupDirs gives the directories of a process's own group and of its
// ancestors that are visible below a mount, nearest first. group is what
// parseSelfCgroup gives.
func cgroupDirs(group string, mounts []cgroupMount) []string {
	if strings.Contains(group, "/../") || strings.HasSuffix(group, "/..") {
		return nil // outside our cgroup namespace: see cgroup_namespaces(7)
	}
	var dirs []string
	for i := len(mounts) - 1; i >= 0; i-- { // a later mount lies on top
		m := mounts[i]
		rel, ok := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(m.Root, "/"))
		if !ok || rel != "" && rel[0] != '/' {
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

// parseEvents reads cgroup.events and reports whether the group or any below it
// has a living process.
func parseEvents(b []byte) (populated, frozen bool, err error) {
	found := false
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch k {
		case "populated":
			populated, found = v != "0", true
		case "frozen":
			frozen = v != "0"
		}
	}
	if !found {
		return false, false, errors.New("no populated line")
	}
	return populated, frozen, nil
}

// cgroupName is the name of a session's own group.
func cgroupName(id string) string { return "zsbx-" + id }

// scopeName is the name of a session's systemd unit, and of its group.
func scopeName(id string) string { return "zsbx-" + id + ".scope" }

// ours reports whether the reference can be to the group of session id. A
// record that was tampered with could name any group of the user's.
func (c *CgroupRef) ours(id string) bool {
	base := path.Base(c.Path)
	return path.IsAbs(c.Path) && path.Clean(c.Path) == c.Path && (base == cgroupName(id) || base == scopeName(id))
}
