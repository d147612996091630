package mounts

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/procfs"
)

// aliases returns copies of mounts for places where the same files are mounted a second time.
// Landlock rules are bound to inodes, so the command could reach the files by the other path.
// unseen says that not all such places are known, and of which path.
func aliases(h *host.Host, table func() Table, ms []Mount) (out []Mount, unseen *Unseen) {
	for _, m := range ms {
		if m.Kind == Pin {
			continue
		}
		p := m.Path
		same, err := table().Same(h, p)
		if err != nil && unseen == nil && m.Kind == Protect {
			unseen = &Unseen{p, err}
		}
		for _, m.Path = range same {
			out = append(out, m)
		}
	}
	return out, unseen
}

// Unseen is a path of which not all other names are known, and why.
type Unseen struct {
	Path string
	Why  error
}

// Table has the mounts that a process sees.
type Table struct {
	Mounts []procfs.Mount
	Unread error // why they are not known; nil if they are
}

// ReadTable returns the table of this process.
func ReadTable(h *host.Host) Table {
	data, err := h.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Table{Unread: fmt.Errorf("other mounts of the same files are not known: %w", err)}
	}
	return Table{Mounts: procfs.Mounts(string(data))}
}

// of returns the index of the mount that a path is on: the deepest one, and the last of those
// on the same point.
func (t Table) of(p string) int {
	best := -1
	for i, m := range t.Mounts {
		if host.Within(p, m.Point) && (best < 0 || len(m.Point) >= len(t.Mounts[best].Point)) {
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
	mount := t.Mounts[on]
	inFS := path.Join(mount.Root, strings.TrimPrefix(p, mount.Point))
	var out []string
	for i, m := range t.Mounts {
		if i == on || m.Dev != mount.Dev || !host.Within(inFS, m.Root) {
			continue
		}
		q := path.Join(m.Point, strings.TrimPrefix(inFS, m.Root))
		if q != p && t.of(q) == i && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// again returns a writable path at which a mount shows a tree a second time, a part of it, or what it is in;
// "" if there is none.
func (t Table) again(tree string, writable []string) string {
	on := t.of(tree)
	if on < 0 {
		return ""
	}
	mount := t.Mounts[on]
	inFS := path.Join(mount.Root, strings.TrimPrefix(tree, mount.Point))
	for i, m := range t.Mounts {
		if i == on || m.Dev != mount.Dev {
			continue
		}
		q := m.Point // of a part
		if host.Within(inFS, m.Root) {
			q = path.Join(m.Point, strings.TrimPrefix(inFS, m.Root))
		} else if !host.Within(m.Root, inFS) {
			continue
		}
		if t.of(q) != i {
			continue
		}
		for _, w := range writable {
			if host.Within(q, w) || host.Within(w, q) && t.of(w) == i {
				return w
			}
		}
	}
	return ""
}

// Same returns the Aliases that lead to the same file; another mount may cover some of them. The
// error says that there may be more.
func (t Table) Same(h *host.Host, p string) (out []string, unseen error) {
	unseen = t.Unread
	for _, q := range t.Aliases(p) {
		here := h.Look(p)
		there := h.Look(q)
		if here.Presence == host.Absent || there.Presence == host.Absent {
			continue
		}
		if here.Presence == host.Unknown {
			unseen = fmt.Errorf("%s may be the same: %w", q, files.Plain(here.Err))
			continue
		}
		if there.Presence == host.Unknown {
			if h.MayReach(q) {
				unseen = fmt.Errorf("%s may be the same: %w", q, files.Plain(there.Err))
			}
			continue
		}
		if here.Stat.ID == there.Stat.ID {
			out = append(out, q)
		}
	}
	return out, unseen
}

// Twice returns the paths of mounts that are visible at several places, by all their names.
func (t Table) Twice() (out []string) {
	for i, m := range t.Mounts {
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
	for _, m := range t.Mounts {
		if m.Type == "proc" || m.Type == "cgroup" || m.Type == "cgroup2" {
			out = append(out, m.Point)
		}
	}
	return out
}
