package policy

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/zsbx/zsbx/policy/internal/tree"
	"github.com/zsbx/zsbx/policy/shell"
)

// maxLinks is how many symbolic links the kernel follows in one path
// (path_resolution(7)).
const maxLinks = 40

// place is where a path leads.
type place struct {
	path  string   // canonical: without symbolic links, "." and ".."
	stat  Stat     // of what is there
	gone  string   // "does not exist" or the like; "" when there is something
	at    string   // the part of the path that gone is said of
	links []string // the symbolic links that were followed, canonical but for themselves
}

// walker resolves symbolic links through a Host, as path_resolution(7) says. It
// looks at each name once, so that ten thousand paths below one directory cost one look
// at that directory: use one for each Resolve.
type walker struct {
	host *Host
	seen map[string]seen // by path, of which the directory is canonical
	dir  string          // the last one that had no links, and a slash: many paths lie in one

	// exact asks for names as the file system spells them. macOS finds
	// ".SSH" where ".ssh" lies, but a rule for the former matches nothing.
	exact bool
	names map[string][]fs.DirEntry // of directories, for exact
	folds map[string]bool          // directories that were asked whether the case of names counts in them and all above, or not
}

// seen is what was found at a path.
type seen struct {
	stat   Stat
	gone   bool
	target string // of a symbolic link
	exact  string // the path as the file system spells it; "" where nobody asked
}

func newWalker(h *Host, size int) *walker {
	return &walker{host: h, seen: make(map[string]seen, size), names: map[string][]fs.DirEntry{}, folds: map[string]bool{}}
}

// walk resolves an absolute path. Where it does not exist, the longest
// part that does is resolved and the rest put after it. The error is for
// paths that cannot be resolved at all: loops and directories that the caller
// may not search.
func (w *walker) walk(p string) (place, error) {
	if !path.IsAbs(p) {
		p = "/" + p
	}
	at, plain := place{path: "/", stat: Stat{Mode: fs.ModeDir}}, true // plain: what was walked is canonical as it stands
	rest := p[1:]
	if !w.exact && len(w.dir) > 1 && strings.HasPrefix(p, w.dir) {
		at.path, rest = w.dir[:len(w.dir)-1], p[len(w.dir):]
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		full := strings.TrimSuffix(p[:max(len(p)-len(rest), 1)], "/")
		if plain = plain && name != "" && name != "." && name != ".."; !plain {
			full = path.Join(at.path, name)
		}
		switch {
		case name == "" || name == ".":
			continue
		case at.gone != "": // ".." can only be taken as it is written
			at.path = full
			continue
		case !at.stat.Mode.IsDir():
			at.gone, at.at, at.path = notDir, at.path, full
			continue
		}
		s, err := w.look(at.path, full)
		if err != nil {
			return place{}, err
		}
		if plain && rest == "" && !w.exact {
			w.dir = full[:len(full)-len(name)]
		}
		at.path, at.stat = full, s.stat
		if w.exact && s.exact != "" {
			at.path, plain = s.exact, plain && s.exact == full
		}
		switch link := at.path; {
		case s.gone:
			at.gone, at.at = "does not exist", full
		case s.stat.Mode&fs.ModeSymlink == 0:
		case s.target == "":
			at.gone, at.at = "does not exist", link
		case len(at.links) == maxLinks:
			return place{}, syscall.ELOOP
		default:
			at.links, plain = append(at.links, link), false
			rest = s.target + "/" + rest
			if at.path = path.Dir(link); path.IsAbs(s.target) {
				at.path = "/"
			}
			at.stat = Stat{Mode: fs.ModeDir}
		}
	}
	var err error
	if at.gone == "" && w.host.Lstat != nil && at.stat.ID == (FileID{}) { // a directory above the last name
		at.stat, err = w.host.Lstat(at.path)
	}
	return at, err
}

// look looks at one name in a canonical directory; full is the path of it.
func (w *walker) look(dir, full string) (seen, error) {
	s, known := w.seen[full]
	if !known {
		err := fs.ErrNotExist // a Resolved made by hand has no Lstat
		if w.host.Lstat != nil {
			s.stat, err = w.host.Lstat(full)
		}
		if s.gone = errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR); err != nil && !s.gone {
			return s, err
		}
	}
	if w.exact && s.exact == "" && !s.gone {
		s.exact, known = w.spelling(dir, full, s.stat), false
	}
	var err error
	if !known && !s.gone && s.stat.Mode&fs.ModeSymlink != 0 {
		s.target, err = w.host.Readlink(cmp.Or(s.exact, full))
	}
	if !known && err == nil {
		w.seen[full] = s
	}
	return s, err
}

// Remembering is a copy of the Host whose RealPath and Trail look at each name
// once. It is for a moment in which nothing is to change.
func (h *Host) Remembering() *Host {
	c := *h
	c.walker = newWalker(&c, 16)
	return &c
}

// RealPath follows every symbolic link of a clean absolute path, the last
// name's too, and returns the canonical path with what is there. Where nothing
// is there, the error is a *fs.PathError for fs.ErrNotExist.
func (h *Host) RealPath(p string) (string, Stat, error) {
	real, _, st, err := h.Trail(p)
	return real, st, err
}

// Trail is RealPath with the symbolic links that lead there, each with a
// canonical directory. Where nothing is there, the path is the one that would
// be made, with fs.ErrNotExist.
func (h *Host) Trail(p string) (real string, links []string, st Stat, err error) {
	w := h.walker
	if w == nil {
		w = newWalker(h, 8)
	}
	pl, err := w.walk(p)
	if err == nil && pl.gone != "" {
		err = &fs.PathError{Op: "lstat", Path: pl.at, Err: fs.ErrNotExist}
	}
	return pl.path, pl.links, pl.stat, err
}

// spelling is the path of a file with its last name as the directory has it.
// Where the directory cannot be read, it stays as it is.
func (w *walker) spelling(dir, full string, st Stat) string {
	if len(full) < len(dir) { // ".."
		return full
	}
	entries, ok := w.names[dir]
	if !ok && w.host.ReadDir != nil {
		entries, _ = w.host.ReadDir(dir)
		w.names[dir] = entries
	}
	name := path.Base(full)
	for _, same := range []func(string) bool{
		func(n string) bool { return n == name },
		func(n string) bool { return strings.EqualFold(n, name) },
		func(n string) bool { // the same letters may be composed differently (TN1150, APFS)
			other, err := w.host.Lstat(path.Join(dir, n))
			return err == nil && other.ID == st.ID
		},
	} {
		if at := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return same(e.Name()) }); at >= 0 {
			return path.Join(dir, entries[at].Name())
		}
	}
	return full
}

// spelled is walk with each name as its directory has it, and so is what links lead to.
func (w *walker) spelled(p string) (place, error) {
	w.spell(p)
	pl, err := w.walk(p)
	if !w.exact && err == nil && len(pl.links) > 0 {
		if w.spell(pl.path); w.exact {
			return w.walk(p)
		}
	}
	return pl, err
}

// spell has walk ask for the spelling of a path that may be written otherwise: on macOS
// of any, elsewhere where some name in it is found in the other case, too (ext4(5),
// casefold; vfat). A mount point is left alone: what automount(8) is asked for takes long.
func (w *walker) spell(p string) {
	w.exact = w.host.OS == "macos"
	var asked []string
	for dir, known := "", false; !w.exact && !known && w.host.Lstat != nil && len(p) > 1; p = dir {
		dir = path.Dir(p)
		if w.exact, known = w.folds[dir]; known {
			continue
		}
		name := path.Base(p)
		other := strings.Map(otherCase, name)
		if other == name {
			continue
		}
		in, err1 := w.host.Lstat(dir)
		st, err2 := w.host.Lstat(p)
		if err1 == nil && err2 == nil && in.ID.Dev == st.ID.Dev {
			same, err := w.host.Lstat(path.Join(dir, other))
			w.exact = err == nil && same.ID == st.ID
			asked = append(asked, dir)
		}
	}
	for _, dir := range asked {
		w.folds[dir] = w.exact
	}
}

func otherCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

// notDir is why there is nothing below a file.
const notDir = "is not a directory"

// missingHint is what to type where a path is missing: what is to be written can
// be made, by hand or by zsbx, where its links lead and no file is in the way.
func missingHint(rule *Rule, written string, pl *place) string {
	switch {
	case isPattern(written), rule.Access&Write != 0 && pl.gone == notDir:
		return ""
	case rule.Access&Write == 0 && rule.Origin.flag():
		return "--ignore-missing"
	case rule.Access&Write == 0:
		return "{ path = " + tree.QuoteTOML(rule.Path) + ", optional = true }"
	case rule.Origin.flag():
		return "mkdir -p " + shell.Quote(pl.path) + "\n--create-missing"
	}
	return "mkdir -p " + shell.Quote(pl.path)
}

// whyGone tells why there is nothing at the path that was written.
func (pl *place) whyGone(written string) string {
	why := pl.at + " " + pl.gone
	if written != pl.at {
		why = written + ": " + why
	}
	if isPattern(written) {
		why += " (only denials may be patterns)"
	}
	return why
}

// isPattern reports whether what does not exist looks like a pattern.
func isPattern(p string) bool { return strings.ContainsAny(p, "*?") }
