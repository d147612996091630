package resolve

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/internal/variables"
	"github.com/zsbx/zsbx/policy"
)

// Detect returns the presets that fit a command and its working directory,
// in the table's order. Their origins say how each was detected, by
//
//   - the base name of argv[0], or of the program that env(1) starts when
//     argv[0] is env;
//   - the directory where the search path finds that program;
//   - files in the working directory and, inside a git repository, in the
//     directories above it up to the repository's root and directly below it.
//
// If a preset does not fit but its programs are on the search path, or a variable names
// their directory, the part that lets them run is returned, "NAME:tools": commands often
// start programs of other toolchains.
//
// Some programs, such as a compiler cache, are started by others unasked. If one is on the
// search path, its preset is returned if writes says that the command may write something
// else.
//
// Only directory entries are read. The files of a stranger's repository decide which
// presets apply, so each preset must be safe for everybody.
func Detect(h host.Host, argv []string, writes bool) (all []policy.Named) {
	v := view{Host: h}
	program := programOf(argv)
	search := searchPath(&h)
	tops := projectDirs(&h)
	base := path.Base(program)
	dir := programDir(&h, program, search)
	onPATH := func(program string) bool { return writes && programDir(&h, program, search) != "" }
	for _, p := range presets.All() {
		places := make([]string, 0, 8)
		for _, d := range p.Dirs {
			places = append(places, v.expanded(d))
		}
		holds := func(dir string) bool {
			return slices.ContainsFunc(places, func(d string) bool { return d != "" && host.Within(dir, d) })
		}
		found := func(name, by string) {
			all = append(all, policy.Named{Value: name, Origin: policy.Origin{Source: "detected by " + by}})
		}
		if slices.ContainsFunc(p.Commands, func(c string) bool { return tables.Matches(c, base) }) {
			found(p.Name, "command "+base)
			continue
		}
		if dir != "" && holds(dir) {
			found(p.Name, "program in "+dir)
			continue
		}
		if file := nearestFile(&h, tops, p.Files); file != "" {
			found(p.Name, file)
			continue
		}
		if at := slices.IndexFunc(search, holds); at >= 0 {
			found(p.Name+presets.ToolsOnly, search[at]+" on PATH")
			continue
		}
		if set := setVariable(&h, p.Vars); set != "" {
			found(p.Name+presets.ToolsOnly, "$"+set)
			continue
		}
		if at := slices.IndexFunc(p.Programs, onPATH); at >= 0 {
			found(p.Name, p.Programs[at]+" on PATH")
		}
	}
	return all
}

// PresetsOf returns the presets that programs of these names switch on, without coding agents'.
func PresetsOf(programs []string) (names []string) {
	for _, p := range presets.All() {
		by := func(program string) bool {
			return slices.ContainsFunc(p.Commands, func(c string) bool { return tables.Matches(c, path.Base(program)) })
		}
		if !p.Agent && slices.ContainsFunc(programs, by) {
			names = append(names, p.Name)
		}
	}
	return names
}

// setVariable returns the first of the variables that has an absolute path, or "".
func setVariable(h *host.Host, names []string) string {
	for _, name := range names {
		if path.IsAbs(h.Getenv(name)) {
			return name
		}
	}
	return ""
}

// nearestFile returns the first of the files in the first directory that has one.
func nearestFile(h *host.Host, dirs []*host.Listing, files []string) string {
	for _, dir := range dirs {
		for _, f := range files {
			if !dir.Lacks(f) && h.Look(path.Join(dir.Dir, f)).Presence == host.Present {
				return path.Join(dir.Dir, f)
			}
		}
	}
	return ""
}

// programOf returns the program that argv starts: argv[0], or for env(1) without options
// the first word that is not an assignment.
func programOf(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	if path.Base(argv[0]) == "env" {
		word := slices.IndexFunc(argv[1:], func(a string) bool { return !strings.Contains(a, "=") }) + 1
		if word > 0 && !slices.ContainsFunc(argv[1:word+1], func(a string) bool { return strings.HasPrefix(a, "-") }) {
			return argv[word]
		}
	}
	return argv[0]
}

// maxBelow is how many directories below the working directory are looked at, and maxInBelow
// how many entries of each: all of a large tree would take longer than the rest of a start.
const maxBelow, maxInBelow = 32, 64

// projectDirs returns the working directory and, if it is in a git repository, the
// directories above it up to the one with .git, and those directly below it.
func projectDirs(h *host.Host) []*host.Listing {
	if h.Dir == "" {
		return nil
	}
	all := []*host.Listing{host.List(h, h.Dir)}
	for top := h.Dir; top != "/"; top = path.Dir(top) {
		git := h.Look(path.Join(top, ".git")).Presence
		if git == host.Absent {
			continue
		}
		if git == host.Unknown { // what lies around it counts only in a repository
			break
		}
		for dir := h.Dir; dir != top; {
			dir = path.Dir(dir)
			all = append(all, host.List(h, dir))
		}
		for _, e := range all[0].Entries {
			if e.IsDir() && e.Name()[0] != '.' && len(all) <= maxBelow {
				all = append(all, host.ListFirst(h, path.Join(h.Dir, e.Name()), maxInBelow))
			}
		}
		break
	}
	return all
}

// UsesNetwork reports whether a program of that name is of little use without the network.
func UsesNetwork(program string) bool { return variables.In("network", program) }
