package policy

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
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
func Detect(h Host, argv []string, writes bool) (all []Named) {
	v := view{Host: h}
	program := programOf(argv)
	search := searchPath(&h)
	tops := projectDirs(&h)
	base := path.Base(program)
	dir := programDir(&h, program, search)
	onPATH := func(program string) bool { return writes && programDir(&h, program, search) != "" }
	for _, p := range Presets() {
		places := make([]string, 0, 8)
		for _, d := range p.Dirs {
			places = append(places, v.expanded(d))
		}
		holds := func(dir string) bool {
			return slices.ContainsFunc(places, func(d string) bool { return d != "" && Within(dir, d) })
		}
		found := func(name, by string) {
			all = append(all, Named{Value: name, Origin: Origin{Source: "detected by " + by}})
		}
		if slices.ContainsFunc(p.Commands, func(c string) bool { return named(c, base) }) {
			found(p.Name, "command "+base)
			continue
		}
		if dir != "" && holds(dir) {
			found(p.Name, "program in "+dir)
			continue
		}
		if file := nearest(&h, tops, p.Files); file != "" {
			found(p.Name, file)
			continue
		}
		if at := slices.IndexFunc(search, holds); at >= 0 {
			found(p.Name+toolsOnly, search[at]+" on PATH")
			continue
		}
		if set := setVariable(&h, p.Vars); set != "" {
			found(p.Name+toolsOnly, "$"+set)
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
	for _, p := range Presets() {
		by := func(program string) bool {
			return slices.ContainsFunc(p.Commands, func(c string) bool { return named(c, path.Base(program)) })
		}
		if !p.agent && slices.ContainsFunc(programs, by) {
			names = append(names, p.Name)
		}
	}
	return names
}

// setVariable returns the first of the variables that has an absolute path, or "".
func setVariable(h *Host, names []string) string {
	for _, name := range names {
		if path.IsAbs(h.Getenv(name)) {
			return name
		}
	}
	return ""
}

// nearest returns the first of the files in the first directory that has one.
func nearest(h *Host, dirs []*Listing, files []string) string {
	for _, dir := range dirs {
		for _, f := range files {
			if !dir.Lacks(f) && h.Look(path.Join(dir.Dir, f)).Presence == Present {
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

// programDir returns the directory in which the search path finds a program, as it is
// written in PATH. It is "" for a program that is named by its path, or not found.
func programDir(h *Host, program string, search []string) string {
	if program == "" || strings.Contains(program, "/") {
		return ""
	}
	for _, dir := range search {
		if at := h.Look(path.Join(dir, program)); at.Presence == Present && !at.IsDir() {
			return dir
		}
	}
	return ""
}

// searchPath returns PATH's absolute elements, cleaned. A relative element depends on the
// working directory, so no right is tied to it.
func searchPath(h *Host) []string {
	var dirs []string
	for dir := range strings.SplitSeq(h.Getenv("PATH"), ":") {
		if strings.HasPrefix(dir, "/") {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs
}

// maxBelow is how many directories below the working directory are looked at, and maxInBelow
// how many entries of each: all of a large tree would take longer than the rest of a start.
const maxBelow, maxInBelow = 32, 64

// projectDirs returns the working directory and, if it is in a git repository, the
// directories above it up to the one with .git, and those directly below it.
func projectDirs(h *Host) []*Listing {
	if h.Dir == "" {
		return nil
	}
	all := []*Listing{List(h, h.Dir)}
	for top := h.Dir; top != "/"; top = path.Dir(top) {
		git := h.Look(path.Join(top, ".git")).Presence
		if git == Absent {
			continue
		}
		if git == Unknown { // what lies around it counts only in a repository
			break
		}
		for dir := h.Dir; dir != top; {
			dir = path.Dir(dir)
			all = append(all, List(h, dir))
		}
		for _, e := range all[0].Entries {
			if e.IsDir() && e.Name()[0] != '.' && len(all) <= maxBelow {
				all = append(all, list(h, path.Join(h.Dir, e.Name()), maxInBelow))
			}
		}
		break
	}
	return all
}

// Listing is the content of a directory, so that names in it need not be looked up one by
// one.
type Listing struct {
	Dir     string
	Entries []fs.DirEntry // sorted by name; only the first ones of a big directory
	All     []fs.DirEntry // nil unless ListAll made it; unsorted for a big directory

	// Unread is why the directory can't be listed, nil if it was, or if there is none. Then it
	// has no entries here, and may have any.
	Unread error

	names map[string]bool // in lower case; nil if some may be missing
}

// MaxListed is how many entries of a directory are looked at one by one. Looking up some
// fifty names takes as long as reading a few hundred.
const MaxListed = 256

// List reads a directory.
func List(host *Host, dir string) *Listing {
	l := list(host, dir, MaxListed+1)
	l.All = nil
	return l
}

// ListAll is List with all entries of a big directory.
func ListAll(host *Host, dir string) *Listing { return list(host, dir, -1) }

func list(host *Host, dir string, n int) *Listing {
	l := &Listing{Dir: dir}
	all, err := host.readDir(dir, n)
	if err != nil && !Missing(err) {
		l.Unread = err
		return l
	}
	l.Entries = all
	l.All = all
	if len(all) > MaxListed+1 {
		l.Entries = slices.Clone(all[:MaxListed+1])
	}
	sortEntries(l.Entries)
	if len(l.Entries) > MaxListed {
		return l
	}
	l.names = make(map[string]bool, len(l.Entries))
	for _, e := range l.Entries {
		if strings.ContainsFunc(e.Name(), func(r rune) bool { return r >= utf8.RuneSelf }) {
			l.names = nil
			break
		}
		l.names[strings.ToLower(e.Name())] = true
	}
	return l
}

// Lacks reports whether a path below the directory, in ASCII, certainly does not exist,
// because nothing there has its first name. A file system may take "A" for "a" (ext4's
// casefold, vfat, APFS), and letters beyond ASCII for others. So with such an entry
// nothing is certain.
func (l *Listing) Lacks(below string) bool {
	first, _, _ := strings.Cut(below, "/")
	return l.names != nil && !l.names[strings.ToLower(first)]
}

// Entries returns the first n entries of a directory, sorted, or all if n is -1.
func (h *Host) Entries(dir string, n int) ([]fs.DirEntry, error) {
	entries, err := h.readDir(dir, n)
	sortEntries(entries)
	return entries, err
}

// Unsorted returns all entries of a directory, in any order.
func (h *Host) Unsorted(dir string) ([]fs.DirEntry, error) { return h.readDir(dir, -1) }

// readDir is Entries in any order. Of a directory that can't be read to its end it returns none.
func (h *Host) readDir(dir string, n int) ([]fs.DirEntry, error) {
	if h.ReadDir == nil {
		return nil, errors.ErrUnsupported
	}
	entries, err := h.ReadDir(dir, n)
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}
