package policy

import (
	"cmp"
	"errors"
	"io/fs"
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
	seen map[string]*place // by canonical directory and name
	slab []place           // places not yet in use: one allocation for many

	// exact asks for names as the file system spells them. macOS finds
	// ".SSH" where ".ssh" lies, but a rule for the former matches nothing.
	exact bool
	names map[string][]string // of directories, for exact
}

func newWalker(h *Host, size int) *walker {
	return &walker{host: h, seen: make(map[string]*place, size), slab: make([]place, size)}
}

// place gives a place from the slab.
func (w *walker) place() *place {
	if len(w.slab) == 0 {
		w.slab = make([]place, 64)
	}
	pl := &w.slab[0]
	w.slab = w.slab[1:]
	return pl
}

// walk resolves a clean absolute path. Where it does not exist, the longest
// part that does is resolved and the rest put after it. The error is for
// paths that cannot be resolved at all: loops and directories that the caller
// may not search.
func (w *walker) walk(p string) (place, error) {
	return w.follow("", p, 0)
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

// follow resolves p from the canonical directory dir ("" is the root), depth
// links deep.
func (w *walker) follow(dir, p string, depth int) (place, error) {
	if depth > maxLinks {
		return place{}, syscall.ELOOP
	}
	absolute := strings.HasPrefix(p, "/")
	if absolute {
		dir = ""
	}
	cur, stale := place{path: dir, stat: Stat{Mode: fs.ModeDir}}, true
	start, end := 0, 0
	if above := strings.LastIndexByte(p, '/'); absolute && above > 0 { // most often the way there is known
		if pl := w.seen[p[:above]]; pl != nil && pl.path == p[:above] && pl.gone == "" && (pl.exact || !w.exact) {
			cur, stale, start = *pl, false, above+1
		}
	}
	for ; start < len(p); start = end + 1 {
		end = len(p)
		if i := strings.IndexByte(p[start:], '/'); i >= 0 {
			end = start + i
		}
		name := p[start:end]
		if name == "" || name == "." {
			continue
		}
		if !cur.stat.Mode.IsDir() {
			cur.gone, cur.at = "is not a directory", cur.path
			cur.path, cur.stat = join(cur.path, p[start:]), Stat{}
			return cur, nil
		}
		if name == ".." {
			cur.path, cur.stat, stale = parent(cur.path), Stat{Mode: fs.ModeDir}, true
			continue
		}
		// No copy is made while the path is canonical as it stands.
		full := p[:end]
		if !absolute || p[:start-1] != cur.path {
			full = cur.path + "/" + name
		}
		next, err := w.step(cur.path, full, depth)
		if err != nil {
			return place{}, err
		}
		links := cur.links
		cur, stale = *next, false
		if len(links) > 0 {
			cur.links = append(links[:len(links):len(links)], next.links...)
		}
		if len(cur.links) > maxLinks {
			return place{}, syscall.ELOOP
		}
		if cur.gone != "" {
			cur.path = join(cur.path, p[end:])
			return cur, nil
		}
		if cur.path == "/" {
			cur.path = ""
		}
	}
	if cur.path == "" {
		cur.path, stale = "/", true
	}
	if stale {
		st, err := w.host.Lstat(cur.path)
		if err != nil {
			return place{}, err
		}
		cur.stat = st
	}
	return cur, nil
}

// step looks at one name in a canonical directory; full is the path of it.
// The result is shared: it must not be changed.
func (w *walker) step(dir, full string, depth int) (*place, error) {
	if pl := w.seen[full]; pl != nil && (pl.exact || !w.exact) {
		return pl, nil
	}
	st, err := w.host.Lstat(full)
	pl := w.place()
	pl.path, pl.at = full, full
	if err == nil && w.exact {
		pl.path = w.spelling(dir, full, st)
	}
	switch {
	case err == nil && st.Mode&fs.ModeSymlink != 0:
		link := pl.path
		target, err := w.host.Readlink(link)
		if err != nil {
			return nil, err
		}
		to, err := w.follow(dir, target, depth+1)
		if err != nil {
			return nil, err
		}
		*pl = to
		pl.links = append([]string{link}, to.links...)
		if target == "" {
			pl.gone = "does not exist"
		}
	case err == nil:
		pl.stat = st
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		pl.gone = "does not exist"
	default:
		return nil, err
	}
	pl.exact = w.exact
	w.seen[full] = pl
	return pl, nil
}

// spelling is the path of a file with its last name as the directory has it.
// Where the directory cannot be read, it stays as it is.
func (w *walker) spelling(dir, full string, st Stat) string {
	name := full[len(dir)+1:]
	names, ok := w.names[dir]
	if !ok && w.host.ReadDir != nil {
		entries, _ := w.host.ReadDir(cmp.Or(dir, "/"))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if w.names == nil {
			w.names = map[string][]string{}
		}
		w.names[dir] = names
	}
	if slices.Contains(names, name) {
		return full
	}
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return dir + "/" + n
		}
	}
	// The same letters may be composed differently (TN1150, APFS).
	for _, n := range names {
		if other, err := w.host.Lstat(dir + "/" + n); err == nil && other.ID == st.ID {
			return dir + "/" + n
		}
	}
	return full
}

// parent is the directory above a canonical one; the root, "", is its own.
func parent(dir string) string {
	return dir[:max(strings.LastIndexByte(dir, '/'), 0)]
}

// join puts the rest of a path, from a slash on, after a directory. Nothing
// is there, so ".." can only be taken as it is written.
func join(dir, rest string) string {
	for name := range strings.SplitSeq(rest, "/") {
		switch name {
		case "", ".":
		case "..":
			dir = parent(dir)
		default:
			dir += "/" + name
		}
	}
	if dir == "" {
		return "/"
	}
	return dir
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
	why := pl.at + " " + pl.gone
	if written == pl.at {
		return why
	}
	return written + ": " + why
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
