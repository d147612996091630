package resolve

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/policy"
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
			if host.Within(p, place) || dir && host.Within(place, p) {
				return "programs of other projects are in " + place
			}
		}
		for _, program := range linked() {
			if p == program || dir && host.Within(program, p) {
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
	for _, info := range presets.All() {
		p, _ := policy.Preset(info.Name) // it is known
		for _, rule := range p.On(system).FS.Rules {
			if rule.Access&policy.Exec != 0 && rule.Access&policy.Write == 0 {
				written = append(written, rule.Path)
			}
		}
	}
	return written
}

// otherPrograms returns where programs of other projects are, with and without the
// caller's variables. The places need not exist.
func otherPrograms(v *view) (all []string) {
	usual := &view{Host: host.Host{Home: v.Home, OS: v.OS}}
	for _, name := range slices.Concat(places("replaced"), executed[v.OS]()) {
		for _, vars := range []*view{v, usual} {
			if p := vars.expanded(name); strings.HasPrefix(p, "/") && p != "/" {
				all = append(all, v.Way(p).Path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// linkedPrograms returns where the links in directories on PATH lead, which need not exist. Those
// of a directory that can't be listed are not known.
func linkedPrograms(h *host.Host) (all []string) {
	for _, dir := range realSearchPath(h) {
		if placeOf(dir, true, "system") != "" {
			continue // zsbx proposes no rule for places of the system
		}
		entries, _ := h.Entries(dir, maxOnPath) // harmless: only proposals ask, and the user decides about them
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				all = append(all, h.Way(path.Join(dir, e.Name())).Path)
			}
		}
	}
	return all
}
