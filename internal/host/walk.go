package host

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// maxLinks is how many symbolic links the kernel follows in one path
// (path_resolution(7)).
const maxLinks = 40

// Walked is where a path leads.
type Walked struct {
	Path  string   // canonical: without symbolic links, "." and ".."
	Stat  Stat     // of the file at path
	Gone  string   // "does not exist" or the like; "" if there is something
	At    string   // the part of the path that gone is about
	Links []string // the symbolic links that were followed, each in a canonical directory

	// unread is the first directory on the way that can't be listed, if the spelling of names
	// was asked for: that of the rest of the path is not known.
	Unread string
}

// Walker resolves symbolic links through a Host, as path_resolution(7) describes. It looks
// at each name once, so that ten thousand paths below one directory cost one look at that
// directory. Each resolution of a policy has one.
type Walker struct {
	host *Host
	seen map[string]seen // by path, with a canonical directory
	dir  string          // the last one without links, and a slash: many paths are in the same one

	// exact asks for names as the file system spells them. macOS finds ".ssh" as
	// ".SSH", but a rule for ".SSH" matches nothing.
	exact bool
	names map[string]*dirNames // of directories, for exact
	folds map[string]bool      // by directory: whether the case of names is ignored in it or above it
}

// seen is what was found at a path.
type seen struct {
	stat   Stat
	gone   bool
	target string // of a symbolic link
	exact  string // the path as the file system spells it; "" if that was not asked for
	unread bool   // the directory can't be listed, so exact is as the path was written
}

// dirNames is the listing of a directory.
type dirNames struct {
	entries []fs.DirEntry
	unread  bool
}

func newWalker(h *Host, size int) *Walker {
	return &Walker{
		host:  h,
		seen:  make(map[string]seen, size),
		names: make(map[string]*dirNames),
		folds: make(map[string]bool),
	}
}

// AsWritten leaves names as they are written, until spelled asks for their spelling.
func (w *Walker) AsWritten() { w.exact = false }

// Walk resolves an absolute path, with each name as it is written.
func (w *Walker) Walk(p string) (Walked, error) {
	w.AsWritten()
	return w.resolve(p)
}

// resolve resolves an absolute path. If it does not exist, the longest part that does is
// resolved, and the rest is appended. The error is for paths that can't be resolved at
// all: loops, and directories that the caller may not search. Then the path is as far as it
// was resolved, with the rest appended.
func (w *Walker) resolve(p string) (Walked, error) {
	t := w.begin(p)
	for t.rest != "" {
		name, full := t.next()
		if name == "" || name == "." || t.below(full) {
			continue
		}
		s, err := w.look(t.Path, full)
		if t.Unread == "" && (s.unread || err != nil && w.exact) {
			t.Unread = t.Path
		}
		if err != nil {
			return Walked{Path: path.Join(full, t.rest), Links: t.Links, Unread: t.Unread}, err
		}
		if t.plain && t.rest == "" && !w.exact {
			w.dir = full[:len(full)-len(name)]
		}
		if !t.enter(&s, full) {
			continue
		}
		if len(t.Links) == maxLinks {
			return Walked{Path: path.Join(t.Path, t.rest), Links: t.Links}, syscall.ELOOP
		}
		t.follow(s.target)
	}
	var err error
	if t.Gone == "" && w.host.Lstat != nil && t.Stat.ID == (FileID{}) { // a directory above the last name
		t.Stat, err = w.host.Lstat(t.Path)
	}
	return t.Walked, err
}

// trip is the resolution of one path, name by name.
type trip struct {
	Walked        // where it has come to
	given  string // the path, absolute
	rest   string // what is left of it
	plain  bool   // what is behind is canonical as it was given
	exact  bool   // as in Walker
}

// begin begins at the root, or at the last directory without links if the path is in it.
func (w *Walker) begin(p string) trip {
	if !path.IsAbs(p) {
		p = "/" + p
	}
	t := trip{
		Walked: Walked{Path: "/", Stat: Stat{Mode: fs.ModeDir}},
		given:  p,
		rest:   p[1:],
		plain:  true,
		exact:  w.exact,
	}
	if !w.exact && len(w.dir) > 1 && strings.HasPrefix(p, w.dir) {
		t.Path = w.dir[:len(w.dir)-1]
		t.rest = p[len(w.dir):]
	}
	return t
}

// next takes the next name from the rest. full is the path with that name.
func (t *trip) next() (name, full string) {
	name, t.rest, _ = strings.Cut(t.rest, "/")
	if name == "" || name == "." {
		t.plain = false
		return name, t.Path
	}
	t.plain = t.plain && name != ".."
	if !t.plain {
		return name, path.Join(t.Path, name)
	}
	return name, strings.TrimSuffix(t.given[:max(len(t.given)-len(t.rest), 1)], "/")
}

// below takes the rest of a path below something that is missing or is not a directory, without a look at
// it: there ".." can only be taken lexically. It reports whether it did.
func (t *trip) below(full string) bool {
	if t.Gone == "" && t.Stat.Mode.IsDir() {
		return false
	}
	if t.Gone == "" {
		t.Gone = NotDir
		t.At = t.Path
	}
	t.Path = path.Join(full, t.rest)
	t.rest = ""
	return true
}

// enter goes on to the file that was found at a path. With exact, its name may be spelled in another
// way there. enter reports whether the file is a symbolic link to follow.
func (t *trip) enter(s *seen, full string) (link bool) {
	t.Path = full
	if t.exact && s.exact != "" {
		t.Path = s.exact
	}
	t.Stat = s.stat
	t.plain = t.plain && t.Path == full
	link = !s.gone && s.stat.Mode&fs.ModeSymlink != 0
	if s.gone || link && s.target == "" {
		t.Gone = "does not exist"
		t.At = t.Path
		return false
	}
	return link
}

// follow goes from a symbolic link to the directory in which its target is looked up.
func (t *trip) follow(target string) {
	t.Links = append(t.Links, t.Path)
	t.plain = false
	t.rest = target + "/" + t.rest
	t.Path = path.Dir(t.Path)
	if path.IsAbs(target) {
		t.Path = "/"
	}
	t.Stat = Stat{Mode: fs.ModeDir}
}

// look looks at one name in a canonical directory. full is its path.
func (w *Walker) look(dir, full string) (seen, error) {
	s, known := w.seen[full]
	if !known {
		err := fs.ErrNotExist // a Resolved made by hand has no Lstat
		if w.host.Lstat != nil {
			s.stat, err = w.host.Lstat(full)
		}
		s.gone = Missing(err)
		if err != nil && !s.gone {
			return s, err
		}
	}
	if w.exact && s.exact == "" && !s.gone {
		s.exact, s.unread = w.spelling(dir, full, s.stat)
		known = false
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

// Remember makes the Host's RealPath and Trail look at each name only once, and returns the walker
// that they share. size is how many names it is made for.
func (h *Host) Remember(size int) *Walker {
	h.walker = newWalker(h, size)
	return h.walker
}

// Remembering returns a copy of the Host whose RealPath and Trail look at each name only
// once, and not at those that h remembers. Use the copy only as long as nothing should change.
func (h *Host) Remembering() *Host {
	c := *h
	c.walker = newWalker(&c, 16)
	if h.walker != nil {
		c.walker.seen = h.walker.seen
	}
	return &c
}

// RealPath follows every symbolic link of a clean absolute path, also as the last name,
// and returns the canonical path, and the Stat of the file. If there is no file, the error is a
// *fs.PathError for fs.ErrNotExist. Any other error leaves that unknown (Way).
func (h *Host) RealPath(p string) (string, Stat, error) {
	real, _, st, err := h.Trail(p)
	return real, st, err
}

// Trail is RealPath with the symbolic links that lead there, each in a canonical
// directory. If nothing is there, it returns the path that would be made, with
// fs.ErrNotExist.
func (h *Host) Trail(p string) (real string, links []string, st Stat, err error) {
	w := h.walker
	if w == nil {
		w = newWalker(h, 8)
	}
	pl, err := w.resolve(p)
	if err == nil && pl.Gone != "" {
		err = &fs.PathError{Op: "lstat", Path: pl.At, Err: fs.ErrNotExist}
	}
	return pl.Path, pl.Links, pl.Stat, err
}

// Spelled returns where a path leads, spelled as on disk.
func (h *Host) Spelled(p string) (Walked, error) {
	return newWalker(h, 8).Spelled(p)
}

// Way is where a path leads. If that is Unknown, Path and Links are as far as it is known, and
// the rest of the path is appended.
type Way struct {
	Path  string   // canonical; it need not exist
	Links []string // the symbolic links on the way, each in a canonical directory
	Found
}

// Way follows every symbolic link of an absolute path, also as the last name.
func (h *Host) Way(p string) Way {
	real, links, st, err := h.Trail(p)
	return Way{Path: real, Links: links, Found: Seen(st, err)}
}

// spelling returns the path of a file with its last name as the directory has it. If the
// directory can't be read, the path stays as it is.
func (w *Walker) spelling(dir, full string, st Stat) (exact string, unread bool) {
	if len(full) < len(dir) { // ".."
		return full, false
	}
	in := w.names[dir]
	if in == nil {
		entries, err := w.host.Entries(dir, -1)
		in = &dirNames{entries, err != nil && !Missing(err)}
		w.names[dir] = in
	}
	name := path.Base(full)
	for _, same := range []func(string) bool{
		func(n string) bool { return n == name },
		func(n string) bool { return strings.EqualFold(n, name) },
		func(n string) bool { // the same letters may be encoded differently (TN1150, APFS)
			other := w.host.Look(path.Join(dir, n))
			return other.Presence == Present && other.Stat.ID == st.ID
		},
	} {
		if at := slices.IndexFunc(in.entries, func(e fs.DirEntry) bool { return same(e.Name()) }); at >= 0 {
			return path.Join(dir, in.entries[at].Name()), false
		}
	}
	return full, in.unread
}

// Spelled does what Walk does, with each name as its directory lists it, also behind links.
func (w *Walker) Spelled(p string) (Walked, error) {
	w.spell(p)
	pl, err := w.resolve(p)
	if !w.exact && err == nil && len(pl.Links) > 0 {
		w.spell(pl.Path)
		if w.exact {
			return w.resolve(p)
		}
	}
	return pl, err
}

// spell makes resolve ask for the spelling of a path that may be spelled in several ways: on
// macOS every path, elsewhere one in which some name is also found in the other case
// (ext4(5), casefold; vfat). Mount points are skipped: automount(8) would take long to look
// for the other name.
func (w *Walker) spell(p string) {
	w.exact = w.host.OS == "macos"
	var asked []string
	for dir, known := "", false; !w.exact && !known && w.host.Lstat != nil && len(p) > 1; p = dir {
		dir = path.Dir(p)
		w.exact, known = w.folds[dir]
		if known {
			continue
		}
		name := path.Base(p)
		other := strings.Map(otherCase, name)
		if other == name {
			continue
		}
		in, err1 := w.look(path.Dir(dir), dir) // resolve will look at both as well
		s, err2 := w.look(dir, p)
		if err1 == nil && err2 == nil && !s.gone && in.stat.ID.Dev == s.stat.ID.Dev {
			same := w.host.Look(path.Join(dir, other))
			w.exact = same.Presence == Unknown || same.Presence == Present && same.Stat.ID == s.stat.ID
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

// NotDir is why there is nothing below a file.
const NotDir = "is not a directory"

// WhyGone returns why there is nothing at the path that was written.
func (pl *Walked) WhyGone(written string) string {
	why := pl.At + " " + pl.Gone
	if written != pl.At {
		why = written + ": " + why
	}
	if IsPattern(written) {
		why += " (only denials may be patterns)"
	}
	return why
}

// IsPattern reports whether a path that does not exist looks like a pattern.
func IsPattern(p string) bool { return strings.ContainsAny(p, "*?") }
