package policy

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

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
	exact bool     // the last name is spelled as the file system spells it
}

// walker resolves symbolic links through a Host, as path_resolution(7) says. It
// caches lookups, so that ten thousand paths below one directory cost one look at
// that directory: use one for each Resolve.
type walker struct {
	host *Host
	root place
	seen map[string]*place // by path, of which links, "." and ".." are parts
	slab []place           // one allocation for many

	// exact asks for names as the file system spells them. macOS finds
	// ".SSH" where ".ssh" lies, but a rule for the former matches nothing.
	exact bool
	names map[string][]fs.DirEntry // of directories, for exact
}

func newWalker(h *Host, size int) *walker {
	root := place{path: "/", stat: Stat{Mode: fs.ModeDir}}
	return &walker{host: h, root: root, seen: make(map[string]*place, size), slab: make([]place, 0, size), names: map[string][]fs.DirEntry{}}
}

// keep remembers where a path leads.
func (w *walker) keep(p string, pl place) *place {
	if len(w.slab) == cap(w.slab) {
		w.slab = make([]place, 0, 64)
	}
	w.slab = append(w.slab, pl)
	kept := &w.slab[len(w.slab)-1]
	w.seen[p] = kept
	return kept
}

// walk resolves an absolute path. Where it does not exist, the longest
// part that does is resolved and the rest put after it. The error is for
// paths that cannot be resolved at all: loops and directories that the caller
// may not search.
func (w *walker) walk(p string) (place, error) {
	if !path.IsAbs(p) {
		p = "/" + p
	}
	pl, err := w.find(p, 0)
	if err != nil {
		return place{}, err
	}
	found := *pl
	if found.path == "/" && found.gone == "" && w.host.Lstat != nil {
		found.stat, err = w.host.Lstat("/")
	}
	return found, err
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

// find is walk, depth links deep. The result is shared: it must not be changed.
func (w *walker) find(p string, depth int) (*place, error) {
	if p == "" || p == "/" {
		return &w.root, nil
	}
	if pl := w.seen[p]; pl != nil && (pl.exact || !w.exact) {
		return pl, nil
	}
	if depth > maxLinks {
		return nil, syscall.ELOOP
	}
	slash := strings.LastIndexByte(p, '/')
	name := p[slash+1:]
	dir, err := w.find(p[:slash], depth)
	if err != nil || name == "" || name == "." {
		return dir, err
	}
	full := p // no copy while the path is canonical as it stands
	if name == ".." || slash > 0 && p[:slash] != dir.path || slash > 0 && dir.path == "/" {
		full = path.Join(dir.path, name)
	}
	var pl place
	switch {
	case dir.gone != "": // ".." can only be taken as it is written
		pl = *dir
		pl.path = full
	case !dir.stat.Mode.IsDir():
		pl = place{path: full, gone: "is not a directory", at: dir.path, links: dir.links}
	case full != p:
		to, err := w.find(full, depth)
		if err != nil {
			return nil, err
		}
		pl = *to
		pl.links = slices.Concat(dir.links, to.links)
	default:
		if pl, err = w.look(dir.path, full, depth); err != nil {
			return nil, err
		}
	}
	if len(pl.links) > maxLinks {
		return nil, syscall.ELOOP
	}
	pl.exact = w.exact
	return w.keep(p, pl), nil
}

// look looks at one name in a canonical directory; full is the path of it.
func (w *walker) look(dir, full string, depth int) (place, error) {
	if w.host.Lstat == nil { // a Resolved made by hand
		return place{path: full, at: full, gone: "does not exist"}, nil
	}
	st, err := w.host.Lstat(full)
	pl := place{path: full, at: full, stat: st}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		pl.gone = "does not exist"
		return pl, nil
	case err != nil:
		return pl, err
	case w.exact:
		pl.path = w.spelling(dir, full, st)
	}
	if st.Mode&fs.ModeSymlink == 0 {
		return pl, nil
	}
	link := pl.path
	target, err := w.host.Readlink(link)
	if err != nil {
		return pl, err
	}
	whole := target
	if !path.IsAbs(target) {
		whole = dir + "/" + target
	}
	to, err := w.find(whole, depth+1)
	if err != nil {
		return pl, err
	}
	pl = *to
	pl.links = append([]string{link}, to.links...)
	if target == "" {
		pl.gone, pl.at = "does not exist", link
	}
	return pl, nil
}

// spelling is the path of a file with its last name as the directory has it.
// Where the directory cannot be read, it stays as it is.
func (w *walker) spelling(dir, full string, st Stat) string {
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

// missingHint is what to type where a path is missing: what is to be written can
// be made, by hand or by zsbx.
func missingHint(rule *Rule, written string) string {
	switch {
	case rule.Access&Write == 0 && rule.Origin.flag():
		return "--ignore-missing"
	case rule.Access&Write == 0:
		return "{ path = " + QuoteTOML(rule.Path) + ", optional = true }"
	case rule.Origin.flag():
		return "mkdir -p " + shell.Quote(written) + "\n--create-missing"
	}
	return "mkdir -p " + shell.Quote(written)
}

// whyGone tells why there is nothing at the path that was written.
func (pl *place) whyGone(written string) string {
	if written == pl.at {
		return pl.at + " " + pl.gone
	}
	return written + ": " + pl.at + " " + pl.gone
}

// homeless reports whether a path lies in a home directory that there is not: none
// is ever made.
func (rs *resolver) homeless(p string) bool {
	if rs.r.Home == "" || !Within(p, rs.r.Home) {
		return false
	}
	_, err := rs.host.Lstat(rs.r.Home)
	return errors.Is(err, fs.ErrNotExist)
}
