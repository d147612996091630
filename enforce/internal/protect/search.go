package protect

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// maxPrograms is how many entries of a directory on PATH are looked at.
const maxPrograms = 4096

// searchPath watches the caller's directories of programs that lie in writable trees, as
// an activated virtual environment's does: what appears there under another program's name
// is what the user starts next. The other's directories come after it on PATH.
func (c *protector) searchPath() {
	all := strings.Split(c.host.Getenv("PATH"), ":")
	for i, dir := range all {
		if !path.IsAbs(dir) {
			dir = c.host.Dir + "/" + dir // its ".." are the file system's, behind links
		}
		to := c.host.Follow(dir) // watched as it is written: the links in it may be replaced
		if slices.ContainsFunc(append(to.Links, to.Path), c.writable) && !c.seen["PATH "+dir] {
			c.seen["PATH "+dir] = true
			c.out.Watch = append(c.out.Watch, Watched{Path: dir, hides: all[i+1:], had: programs(c.host, dir)})
		}
	}
}

// programs are the names in a directory on PATH, sorted.
func programs(host *policy.Host, dir string) (names []string) {
	entries, _ := policy.ReadSome(host, dir, maxPrograms)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// hidden tells of programs that hide others by now and were not there.
func (s *Snapshot) hidden(w *Watched) (out []Change) {
	names := programs(s.host, w.Path)
	if len(names) >= maxPrograms && len(w.had) < maxPrograms {
		return []Change{{Path: w.Path}} // some are out of sight
	}
	own := s.host.Follow(w.Path).Path
	for _, name := range names {
		if _, old := slices.BinarySearch(w.had, name); old {
			continue
		}
		is := func(dir string) bool {
			_, err := s.host.Lstat(path.Join(dir, name))
			return err == nil && path.IsAbs(dir) && s.host.Follow(dir).Path != own
		}
		if slices.ContainsFunc(w.hides, is) {
			out = append(out, Change{Path: path.Join(own, name), New: true})
		}
	}
	return out
}
