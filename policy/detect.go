package policy

import (
	"path"
	"slices"
	"strings"
)

// Detect returns the presets that fit a command and its working directory,
// in the table's order, each with what it was detected by as its origin:
//
//   - the base name of argv[0], or of the program that env(1) starts when
//     argv[0] is env;
//   - the directory where the search path finds that program;
//   - files in the working directory and, inside a git repository, in the
//     directories above it up to the repository's root.
//
// Of a preset that does not fit but whose programs are on the search path,
// the part that lets them run is returned, "NAME:tools": commands start other
// toolchains' programs all the time.
//
// Some programs run in others unasked: a compiler cache. One on the search path
// switches its preset on for a command that has something else to write, as
// writes says.
//
// Nothing is read but directory entries. A stranger's repository decides by
// its files which presets apply, so each preset must be safe for everybody.
func Detect(h Host, argv []string, writes bool) []Named {
	var found []Named
	program := programOf(argv)
	search := h.searchPath()
	dir := h.programDir(program, search)
	dirs := unlisted(search)
	var tops []*Listing
	for _, dir := range h.projectDirs() {
		tops = append(tops, List(&h, dir))
	}
	for _, p := range Presets() {
		if why := p.applies(&h, program, dir, tops); why != "" {
			found = append(found, Named{Value: p.Name, Origin: Origin{Source: why}})
		} else if on := p.onPATH(&h, search); on != "" {
			found = append(found, Named{Value: p.Name + toolsOnly, Origin: Origin{Source: "detected by " + on + " on PATH"}})
		} else if file := nearest(&h, dirs, p.Programs); writes && file != "" {
			found = append(found, Named{Value: p.Name, Origin: Origin{Source: "detected by " + file}})
		}
	}
	return found
}

// onPATH is the first directory of the search path that holds programs of the
// preset, or "".
func (p *PresetInfo) onPATH(h *Host, search []string) string {
	for _, d := range p.Dirs {
		d = h.place(d)
		for _, dir := range search {
			if d != "" && Within(dir, d) {
				return dir
			}
		}
	}
	return ""
}

// ClosedProject finds the project file, such as go.mod, that a command is going
// to miss: the nearest one above the working directory of a preset in use, when
// the policy does not let the command read it. It is "" when there is none.
// Only the working directory was allowed then, and the project begins above it.
func (r *Resolved) ClosedProject() string {
	tops := unlisted(r.host.projectDirs())
	for _, info := range Presets() {
		used := slices.ContainsFunc(r.Presets, func(n Named) bool { return n.Value == info.Name })
		if !used || info.Name == "git" {
			continue // the git directory comes along by itself
		}
		if file := nearest(&r.host, tops, info.Files); file != "" && path.Dir(file) != r.Dir && !r.Allowed(file, Read).Allowed {
			return file
		}
	}
	return ""
}

// unlisted are directories of which nothing is known.
func unlisted(dirs []string) []*Listing {
	all := make([]*Listing, len(dirs))
	for i, dir := range dirs {
		all[i] = &Listing{Dir: dir}
	}
	return all
}

// nearest is the first of the files in the first directory that has one.
func nearest(h *Host, dirs []*Listing, files []string) string {
	for _, dir := range dirs {
		for _, f := range files {
			if dir.Lacks(f) {
				continue
			}
			if _, err := h.Lstat(path.Join(dir.Dir, f)); err == nil {
				return path.Join(dir.Dir, f)
			}
		}
	}
	return ""
}

// applies says by what a preset was detected, or "".
func (p *PresetInfo) applies(h *Host, program, dir string, tops []*Listing) string {
	base := path.Base(program)
	for _, c := range p.Commands {
		if named(c, base) {
			return "detected by command " + base
		}
	}
	if dir != "" {
		for _, d := range p.Dirs {
			if d = h.place(d); d != "" && Within(dir, d) {
				return "detected by program in " + dir
			}
		}
	}
	if file := nearest(h, tops, p.Files); file != "" {
		return "detected by " + file
	}
	return ""
}

// programOf is the program that argv starts: argv[0], but for env(1) without
// options the first word that is no assignment.
func programOf(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	if path.Base(argv[0]) != "env" {
		return argv[0]
	}
	for _, a := range argv[1:] {
		if strings.HasPrefix(a, "-") {
			break
		}
		if !strings.Contains(a, "=") {
			return a
		}
	}
	return argv[0]
}

// programDir is the directory in which the search path finds a program, as it
// is written in PATH; "" for a program named by its path, or not found.
func (h *Host) programDir(program string, search []string) string {
	if program == "" || strings.Contains(program, "/") {
		return ""
	}
	for _, dir := range search {
		if st, err := h.Lstat(path.Join(dir, program)); err == nil && !st.Mode.IsDir() {
			return dir
		}
	}
	return ""
}

// searchPath is PATH's absolute elements, cleaned. A relative element names
// whatever the working directory happens to be: no right is tied to it.
func (h *Host) searchPath() []string {
	var dirs []string
	for dir := range strings.SplitSeq(h.Getenv("PATH"), ":") {
		if strings.HasPrefix(dir, "/") {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs
}

// projectDirs is the working directory and, when it lies in a git repository,
// the directories above it up to the one that holds .git.
func (h *Host) projectDirs() []string {
	if h.Dir == "" {
		return nil
	}
	var dirs []string
	for dir := path.Clean(h.Dir); ; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if _, err := h.Lstat(path.Join(dir, ".git")); err == nil {
			return dirs
		}
		if dir == "/" {
			return dirs[:1]
		}
	}
}
