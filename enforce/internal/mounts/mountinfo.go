package mounts

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// aliases repeats mounts wherever the same file system is mounted a second
// time: Landlock rules are bound to inodes, and would let the command at the
// same files by the other path.
func aliases(host *policy.Host, table MountTable, ms []Mount) []Mount {
	if len(ms) == 0 {
		return nil
	}
	if table == nil {
		table = ReadMounts(host)
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

// mounted is one line of proc_pid_mountinfo(5).
type mounted struct {
	dev   string // major:minor
	root  string // the directory of the file system that is mounted
	point string // where
	kind  string // of the file system
}

type MountTable []mounted

// ReadMounts is the table of this process, empty where there is none to read.
func ReadMounts(host *policy.Host) MountTable {
	data, err := host.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return MountTable{}
	}
	return ParseMountInfo(string(data))
}

// ParseMountInfo reads the fields 3 to 5 and the type of each line. It is on the way to
// every command, so it makes no more garbage than it must.
func ParseMountInfo(text string) MountTable {
	t := make(MountTable, 0, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		var f [6]string
		rest, ok := line, true
		for i := range f {
			if f[i], rest, ok = strings.Cut(rest, " "); !ok {
				break
			}
		}
		if ok {
			_, kind, _ := strings.Cut(rest, "- ")
			kind, _, _ = strings.Cut(kind, " ")
			t = append(t, mounted{dev: f[2], root: unescapeMount(f[3]), point: unescapeMount(f[4]), kind: kind})
		}
	}
	return t
}

// unescapeMount undoes what the kernel does to blanks and backslashes.
func unescapeMount(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// of is the mount that a path lies on: the deepest one, and of those on the
// same point the last.
func (t MountTable) of(p string) int {
	best := -1
	for i, m := range t {
		if policy.Within(p, m.point) && (best < 0 || len(m.point) >= len(t[best].point)) {
			best = i
		}
	}
	return best
}

// Aliases are the other paths of what is at p.
func (t MountTable) Aliases(p string) []string {
	on := t.of(p)
	if on < 0 {
		return nil
	}
	inFS := path.Join(t[on].root, strings.TrimPrefix(p, t[on].point))
	var out []string
	for i, m := range t {
		if i == on || m.dev != t[on].dev || !policy.Within(inFS, m.root) {
			continue
		}
		q := path.Join(m.point, strings.TrimPrefix(inFS, m.root))
		if q != p && t.of(q) == i && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// Relied are mounts of the kernel's by which a command could get away from being
// tracked, wherever they are.
func (t MountTable) Relied() []string {
	var out []string
	for _, m := range t {
		if m.kind == "proc" || m.kind == "cgroup" || m.kind == "cgroup2" {
			out = append(out, m.point)
		}
	}
	return out
}
