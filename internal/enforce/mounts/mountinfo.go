package mounts

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/policy"
)

// aliases returns copies of mounts for places where the same files are mounted a second time.
// Landlock rules are bound to inodes, so the command could reach the files by the other path.
func aliases(host *policy.Host, table func() Table, ms []Mount) (out []Mount) {
	for _, m := range ms {
		if m.Kind == Pin {
			continue
		}
		for _, m.Path = range table().Same(host, m.Path) {
			out = append(out, m)
		}
	}
	return out
}

// Table has the mounts that a process sees.
type Table []procfs.Mount

// ReadTable returns the table of this process. It is empty if it can't be read.
func ReadTable(host *policy.Host) Table {
	data, _ := host.ReadFile("/proc/self/mountinfo")
	return procfs.Mounts(string(data))
}

// of returns the index of the mount that a path is on: the deepest one, and the last of those
// on the same point.
func (t Table) of(p string) int {
	best := -1
	for i, m := range t {
		if policy.Within(p, m.Point) && (best < 0 || len(m.Point) >= len(t[best].Point)) {
			best = i
		}
	}
	return best
}

// Aliases returns the other paths of the file at p.
func (t Table) Aliases(p string) []string {
	on := t.of(p)
	if on < 0 {
		return nil
	}
	inFS := path.Join(t[on].Root, strings.TrimPrefix(p, t[on].Point))
	var out []string
	for i, m := range t {
		if i == on || m.Dev != t[on].Dev || !policy.Within(inFS, m.Root) {
			continue
		}
		q := path.Join(m.Point, strings.TrimPrefix(inFS, m.Root))
		if q != p && t.of(q) == i && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// Same returns the Aliases that lead to the same file. Another mount may cover one.
func (t Table) Same(host *policy.Host, p string) []string {
	return slices.DeleteFunc(t.Aliases(p), func(q string) bool {
		here, there := host.Look(p), host.Look(q)
		return here.Presence != policy.Present || there.Presence != policy.Present || here.Stat.ID != there.Stat.ID
	})
}

// Twice returns the paths of mounts that are visible at several places, by all their names.
func (t Table) Twice() (out []string) {
	for i, m := range t {
		if t.of(m.Point) == i { // no other mount covers it
			if names := t.Aliases(m.Point); len(names) > 0 {
				out = append(append(out, m.Point), names...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Relied returns the mount points of kernel file systems with which a command could escape
// tracking.
func (t Table) Relied() []string {
	var out []string
	for _, m := range t {
		if m.Type == "proc" || m.Type == "cgroup" || m.Type == "cgroup2" {
			out = append(out, m.Point)
		}
	}
	return out
}
