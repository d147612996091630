package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
)

// HomeWrite is what a command wrote into one directory of its private home, which is
// gone with the session.
type HomeWrite struct {
	Path  string // of the directory, or of a file at the top, as the command saw it
	Dir   bool
	Files int
	Bytes int64
}

// maxHome bounds how many entries of a private home are looked at.
const maxHome = 100_000

// homeWrites lists what is in a private home that was not put there for the command.
// It follows no links, nor one that the command has put in the directory's place.
func homeWrites(plan *enforce.Plan) []HomeWrite {
	if plan == nil || plan.Mounts.Home() == nil {
		return nil
	}
	d := plan.Mounts.Home()
	stubs := map[string]bool{}
	for _, s := range d.Stubs() {
		stubs[s] = true
	}
	var out []HomeWrite
	seen := 0
	_ = filepath.WalkDir(d.From, func(p string, e fs.DirEntry, err error) error {
		if seen++; seen > maxHome {
			return filepath.SkipAll
		}
		rel := strings.TrimPrefix(p, d.From)
		if err != nil || e.IsDir() || rel == "" || stubs[d.Path+rel] {
			return nil // what can't be looked into has been told by what lies around it
		}
		top, dir := homeTop(strings.TrimPrefix(rel, "/"))
		w := HomeWrite{Path: d.Path + "/" + top, Dir: dir}
		i := slices.IndexFunc(out, func(o HomeWrite) bool { return o.Path == w.Path })
		if i < 0 {
			i, out = len(out), append(out, w)
		}
		out[i].Files++
		if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
			out[i].Bytes += st.Size()
		}
		return nil
	})
	return out
}

// homeTop is the part of a path below a home directory that belongs to one program,
// and whether it is a directory.
func homeTop(rel string) (top string, dir bool) {
	deep := 1
	switch first, rest, _ := strings.Cut(rel, "/"); first {
	case ".cache", ".config":
		deep = 2
	case ".local":
		if deep = 3; strings.HasPrefix(rest, "bin/") {
			deep = 2
		}
	}
	parts := strings.Split(rel, "/")
	if len(parts) <= deep {
		return rel, false
	}
	return strings.Join(parts[:deep], "/"), true
}
