package policy

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// Foreign programs: what other projects, or programs outside, execute. No rule to write
// them is ever proposed.

// maxOnPath is how many entries of a directory on PATH are looked at.
const maxOnPath = 4096

// OtherPrograms returns a function that says why writing to a canonical path could change
// programs of other projects, or "". These programs are in what a preset opens only to
// execute it, in what a preset's variables replace by the project's own cache, and where
// links on PATH lead. A directory counts with everything in it. The machine is looked at
// once, when it is first asked.
func (r *Resolved) OtherPrograms() func(p string, dir bool) string {
	places := sync.OnceValue(func() []string { return otherPrograms(&r.host) })
	linked := sync.OnceValue(func() []string { return linkedPrograms(&r.host.Host) })
	return func(p string, dir bool) string {
		for _, place := range places() {
			if Within(p, place) || dir && Within(place, p) {
				return "programs of other projects are in " + place
			}
		}
		for _, program := range linked() {
			if p == program || dir && Within(program, p) {
				return "a link on PATH leads to " + program
			}
		}
		return ""
	}
}

// executed returns, for each system, the paths that presets open only to execute what is
// there, as they are written.
var executed = map[string]func() []string{
	"linux": sync.OnceValue(func() []string { return executedOn("linux") }),
	"macos": sync.OnceValue(func() []string { return executedOn("macos") }),
}

func executedOn(system string) (written []string) {
	for _, info := range Presets() {
		p, _ := Preset(info.Name) // it is known
		for _, rule := range p.on(system).FS.Rules {
			if rule.Access&Exec != 0 && rule.Access&Write == 0 {
				written = append(written, rule.Path)
			}
		}
	}
	return written
}

// otherPrograms returns where programs of other projects are, with and without the
// caller's variables. The places need not exist.
func otherPrograms(v *view) (all []string) {
	usual := &view{Host: Host{Home: v.Home, OS: v.OS}}
	for _, name := range slices.Concat(places("replaced"), executed[v.OS]()) {
		for _, vars := range []*view{v, usual} {
			if p := vars.expanded(name); strings.HasPrefix(p, "/") && p != "/" {
				all = append(all, v.Follow(p).Path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// linkedPrograms returns where the links in directories on PATH lead, which need not exist. Those
// of a directory that can't be listed are not known.
func linkedPrograms(h *Host) (all []string) {
	for _, dir := range realSearchPath(h) {
		if placeOf(dir, true, "system") != "" {
			continue // zsbx proposes no rule for places of the system
		}
		entries, _ := h.Entries(dir, maxOnPath) // harmless: only proposals ask, and the user decides about them
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				all = append(all, h.Follow(path.Join(dir, e.Name())).Path)
			}
		}
	}
	return all
}

// Repository returns the nearest directory above a canonical path, or the path itself, that
// has a .git in it, or "". The home directory and those above it do not count. A .git that
// can't be looked at counts.
func (h *Host) Repository(p string) string {
	home := h.Follow(h.Home).Path
	for dir := p; dir != "/" && !Within(home, dir); dir = path.Dir(dir) {
		if h.mayBeRepository(dir) {
			return dir
		}
	}
	return ""
}

// mayBeRepository reports whether a directory has a .git in it, or if that is unknown.
func (h *Host) mayBeRepository(dir string) bool {
	return h.Look(path.Join(dir, ".git")).Presence != Absent
}

// maxProjects is how many directories are looked at for repositories in them.
const maxProjects = 2000

// Holds returns a repository in a directory, at most two levels down, or a directory there
// that can't be looked into; "" for none.
func (h *Host) Holds(dir string) string {
	looked := 0
	return h.holds(dir, 2, &looked)
}

func (h *Host) holds(dir string, deep int, looked *int) string {
	if h.mayBeRepository(dir) {
		return dir
	}
	if deep == 0 || h.ReadDir == nil {
		return ""
	}
	entries, err := h.Entries(dir, -1)
	if err != nil && !Missing(err) {
		return dir
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		*looked++
		if *looked > maxProjects {
			return dir
		}
		if found := h.holds(path.Join(dir, e.Name()), deep-1, looked); found != "" {
			return found
		}
	}
	return ""
}
