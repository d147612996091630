package mounts

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/policy"
)

// aliases repeats mounts wherever the same file system is mounted a second
// time: Landlock rules are bound to inodes, and would let the command at the
// same files by the other path.
func aliases(host *policy.Host, table Table, ms []Mount) []Mount {
	if len(ms) == 0 {
		return nil
	}
	if table == nil {
		table = ReadTable(host)
	}
	var out []Mount
	for _, m := range ms {
		if m.Kind == Pin {
			continue
		}
		for _, p := range table.Aliases(m.Path) {
			here, err1 := host.Lstat(m.Path)
			there, err2 := host.Lstat(p)
			if err1 == nil && err2 == nil && here.ID == there.ID {
				m.Path = p
				out = append(out, m)
			}
		}
	}
	return out
}

// Table are the mounts that a process sees.
type Table []procfs.Mount

// ReadTable is the table of this process, empty where there is none to read.
func ReadTable(host *policy.Host) Table {
	data, err := host.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Table{}
	}
	return procfs.Mounts(string(data))
}

// of is the mount that a path lies on: the deepest one, and of those on the
// same point the last.
func (t Table) of(p string) int {
	best := -1
	for i, m := range t {
		if policy.Within(p, m.Point) && (best < 0 || len(m.Point) >= len(t[best].Point)) {
			best = i
		}
	}
	return best
}

// Aliases are the other paths of what is at p.
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

// Views are all second names that mounts give, in both directions.
func (t Table) Views() (out []deny.View) {
	for i, m := range t {
		if t.of(m.Point) != i {
			continue // another mount lies on it
		}
		for _, name := range t.Aliases(m.Point) {
			out = append(out, deny.View{At: m.Point, Name: name}, deny.View{At: name, Name: m.Point})
		}
	}
	return out
}

// Relied are mounts of the kernel's by which a command could get away from being
// tracked, wherever they are.
func (t Table) Relied() []string {
	var out []string
	for _, m := range t {
		if m.Type == "proc" || m.Type == "cgroup" || m.Type == "cgroup2" {
			out = append(out, m.Point)
		}
	}
	return out
}
