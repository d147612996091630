package policy

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

// places are those of a section of the table.
func places(section string) []string { return tables.Find(tables.Places(), section) }

// StartupFiles are files and directories below the home directory that the
// user's next shell, login, git or editor reads and executes. They are not to be
// changed.
func StartupFiles() []string { return places("startup") }

// actedUpon says which of these places could be changed by writing to a path,
// or "".
func (g *guard) actedUpon(p *Path) string {
	for name := range strings.SplitSeq(p.Path, "/") {
		if name != "" && name[0] == '.' && slices.Contains(places("project"), name) {
			return name
		}
	}
	if rel, ok := strings.CutPrefix(p.Path, g.home+"/"); ok && g.home != "." {
		return startedBy(rel, p.Mode&fs.ModeDir != 0)
	}
	return placeOf(p.Path, p.Mode&fs.ModeDir != 0, places("system"))
}

// startedBy is the place below the home directory that programs outside start, or
// read when they start, and that writing to a path below it could change, or "".
func startedBy(rel string, dir bool) string {
	if place := placeOf(rel, dir, StartupFiles()); place != "" {
		return place
	}
	return placeOf(rel, dir, places("programs"))
}

// placeOf is the first of some places that a path lies in, or that lies in it.
func placeOf(p string, dir bool, places []string) string {
	for _, place := range places {
		if Within(p, place) || dir && Within(place, p) {
			return place
		}
	}
	return ""
}

// StartedOutside is what the user's next shell, login or program would start or
// read when it starts, if a command could write to a canonical path: a directory on
// PATH, or a place in the home directory. It is "" for none. The path need not
// exist.
func (r *Resolved) StartedOutside(p string) string {
	if r.host.Lstat == nil {
		return ""
	}
	g := r.host.newGuard(nil)
	if rel, ok := strings.CutPrefix(p, g.home+"/"); ok && g.home != "." {
		if place := startedBy(rel, true); place != "" {
			return "~/" + place
		}
	}
	g.search = r.host.realSearchPath()
	_, st, _ := r.Look(p)
	return g.onPATH(Path{Path: p, Mode: st.Mode})
}
