package resolve

import (
	"io/fs"
	"path"
	"slices"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// mostPrograms is how many entries of a directory on PATH are looked at for a program.
const mostPrograms = 64

// ClosedPath returns the directories on the command's PATH, canonical, that exist, have
// programs, and are closed to the command: it gets a program of the same name from another
// directory, or none. A directory that was denied or that can't be reached without zsbx does
// not count, and neither does one that has only zsbx. If rules allow all of PATH as it is
// written, nothing is looked at.
func (r *Resolved) ClosedPath() (closed []string) {
	baseline := func(p Path) bool { return p.Rule.Origin.Source == "baseline" && p.Access&policy.Exec != 0 }
	if !slices.ContainsFunc(r.Paths, baseline) {
		return nil // the user names all that the command may execute
	}
	for _, dir := range r.searchPath() {
		open := func(p Path) bool {
			return p.Access&policy.Exec != 0 && (p.Covers(dir) || p.Mode.IsDir() && host.Within(dir, p.Written))
		}
		if slices.ContainsFunc(r.Paths, open) {
			continue
		}
		real, st, err := r.host.RealPath(dir)
		if err != nil || !st.Mode.IsDir() || slices.Contains(closed, real) {
			continue
		}
		v := r.Allowed(real, policy.Exec)
		if v.Allowed || v.Deny != nil && !v.Deny.Secret || !r.hasPrograms(real) {
			continue
		}
		closed = append(closed, real)
	}
	return closed
}

// searchPath returns the absolute elements of the command's PATH, cleaned.
func (r *Resolved) searchPath() []string {
	asCommand := host.Host{Env: r.Env}
	return searchPath(&asCommand)
}

// NextOnPATH returns the program of the same name in a directory on the command's PATH that comes
// after the one that a program is in, or "". The program's path is canonical.
func (r *Resolved) NextOnPATH(program string) string {
	dir, name := path.Split(program)
	passed := false
	for _, d := range r.searchPath() {
		real := r.host.Way(d).Path
		if real == path.Clean(dir) {
			passed = true
			continue
		}
		file := path.Join(real, name)
		_, st, err := r.host.RealPath(file)
		if passed && err == nil && st.Mode.IsRegular() && st.Mode&0o111 != 0 {
			return file
		}
	}
	return ""
}

// hasPrograms reports whether a directory has a program other than zsbx. One that can't be
// listed may have any.
func (r *Resolved) hasPrograms(dir string) bool {
	entries, err := r.host.Entries(dir, mostPrograms)
	if err != nil {
		return true
	}
	for _, e := range entries {
		file := path.Join(dir, e.Name())
		if file == r.host.Program || e.IsDir() {
			continue
		}
		at := r.host.Look(file)
		mode := at.Stat.Mode
		link := mode&fs.ModeSymlink != 0
		program := mode.IsRegular() && mode&0o111 != 0
		if at.Presence == host.Unknown || at.Presence == host.Present && (link || program) {
			return true
		}
	}
	return false
}
