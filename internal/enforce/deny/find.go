package deny

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// hit is an existing file or directory that is denied.
type hit struct {
	Path string
	by   *barred
	dir  bool
	link bool // a symbolic link

	// closed marks a directory that zsbx can't read. Denied files may be in it, and its owner
	// can open it by chmod(2), so all of it is denied.
	closed bool
}

// names returns a path and its other names through mounts, as far as they are known.
func (d *denials) names(p string) []string {
	if d.Unread != nil {
		d.unseen = d.Unread
	}
	if len(d.Twice) == 0 {
		return []string{p}
	}
	same, unseen := d.Same(p)
	if unseen != nil {
		d.unseen = unseen
	}
	return append([]string{p}, same...)
}

// alias is a path in a tree (at) with one of its names (name). Denials are compared with the
// name.
type alias struct{ at, name string }

// aliases returns those of a tree and of what is mounted in it.
func (d *denials) aliases(tree string) (out []alias) {
	for _, at := range append([]string{tree}, d.Twice...) {
		if host.Within(at, tree) {
			for _, n := range d.names(at) {
				out = append(out, alias{at, n})
			}
		}
	}
	return out
}

// hits finds what the denials match in a tree. Missing files need nothing, since the command
// can't make them in a tree that it can't write.
func (d *denials) hits(tree string, aliases []alias, deny []barred) (out []hit, _ error) {
	if d.Host == nil {
		return nil, errors.New("no host to list it with")
	}
	seen := make(map[hit]bool)
	for _, v := range aliases {
		found, err := d.find(v, deny)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			names := d.names(h.Path)
			if h.closed { // lstat(2) may not see it either
				names = append(names, path.Join(v.at, h.Path[len(v.name):]))
			}
			for _, h.Path = range names {
				if h.link {
					err := d.follow(h)
					if err != nil {
						return nil, err
					}
				} else if (h.Path != tree || h.closed) && host.Within(h.Path, tree) && !seen[h] {
					seen[h] = true
					out = append(out, h)
				}
			}
		}
	}
	return out, nil
}

// follow denies the target of a denied link, in whatever tree it is, since neither Landlock nor
// a mount can close a link itself. It is needed for globs; links in plain paths were followed
// when the policy was resolved.
func (d *denials) follow(h hit) error {
	real, _, err := d.Host.RealPath(h.Path)
	switch {
	case host.Missing(err) || errors.Is(err, syscall.ELOOP):
		return nil // a dangling link
	case err != nil:
		return err
	}
	known := func(b barred) bool { return !b.Glob && b.covers(real) }
	if slices.ContainsFunc(d.deny, known) || slices.ContainsFunc(d.linked, known) {
		return nil
	}
	if slices.ContainsFunc(d.Trees, func(t Tree) bool { return host.Within(real, t.Path) }) {
		target := resolve.DenyPath{Pattern: real, Deny: h.by.Deny, Secret: h.by.Secret}
		d.linked = append(d.linked, barred{DenyPath: target})
	}
	return nil
}

// find looks for denied files in a directory, by one of its names.
func (d *denials) find(v alias, deny []barred) (out []hit, _ error) {
	var globs []*barred
	for i := range deny {
		b := &deny[i]
		p := b.Pattern
		switch {
		case b.covers(v.name): // it denies the mount itself
			p = v.at
		case !b.reaches(v.name):
			continue
		case b.Glob:
			globs = append(globs, b)
			continue
		}
		at := d.Host.Look(p)
		if at.Presence == host.Absent {
			continue
		}
		h := hit{Path: p, by: b, dir: at.IsDir()}
		for errors.Is(at.Err, fs.ErrPermission) && h.Path != v.name {
			h = hit{Path: path.Dir(h.Path), by: b, closed: true}
			at = d.Host.Look(h.Path)
		}
		if at.Presence != host.Present {
			return nil, at.Err
		}
		out = append(out, h)
	}
	if len(globs) == 0 {
		return out, nil
	}
	if at := d.Host.Look(v.name); at.Presence == host.Present && !at.IsDir() {
		return out, nil // a file with a mount on it
	}
	found, err := d.search(v.name, globs)
	for _, h := range found {
		i := slices.IndexFunc(deny, func(b barred) bool {
			return b.Glob && (b.covers(h.Path) || h.closed && b.reaches(h.Path))
		})
		h.by = &deny[max(0, i)]
		out = append(out, h)
	}
	return out, err
}

// Searched is what was found in directories, by the directory and the globs. So the plan and the
// snapshot search a tree only once.
type Searched map[string][]hit

// search finds what globs match in a directory, sorted by path.
func (d *denials) search(dir string, deny []*barred) ([]hit, error) {
	var globs []glob.Glob
	var patterns []string
	for _, b := range deny {
		globs = append(globs, b.glob)
		patterns = append(patterns, b.Pattern)
	}
	slices.Sort(patterns)
	key := dir + "\x00" + strings.Join(slices.Compact(patterns), "\x00")
	if found, known := d.Searched[key]; known {
		return found, nil
	}
	set := glob.NewSet(globs)
	found, err := d.walk(dir, set.At(dir))
	for tries := 1; errors.Is(err, fs.ErrNotExist) && tries < attempts; tries++ {
		found, err = d.walk(dir, set.At(dir))
	}
	slices.SortFunc(found, func(a, b hit) int { return strings.Compare(a.Path, b.Path) })
	if err == nil {
		d.Searched[key] = found
	}
	return found, err
}

// attempts is how often a tree is searched if directories vanish meanwhile. A vanished
// directory can't be ignored, since it may have moved to a part that was already searched.
const attempts = 5

// Existing returns the paths in some trees that denials match, including links: those of earlier
// searches, or else of now. The value is true for what may have such paths, but can't be looked at:
// a directory, or a tree that can't be searched completely.
func Existing(machine *host.Host, trees []string, deny []resolve.DenyPath, earlier Searched) map[string]bool {
	if len(deny) == 0 {
		return nil
	}
	out := make(map[string]bool)
	d := newDenials(Request{Host: machine, Deny: deny, Searched: earlier})
	add := func(tree string, deny []barred) {
		hits, err := d.find(alias{tree, tree}, deny)
		if err != nil {
			out[tree] = true
		}
		for _, h := range hits {
			out[h.Path] = out[h.Path] || h.closed
		}
	}
	for _, tree := range trees {
		add(tree, d.deny)
	}
	for i, b := range d.deny {
		if !b.Glob {
			add(path.Dir(b.Pattern), d.deny[i:i+1])
		}
	}
	return out
}

// Named returns the paths in some trees that denials match, and the targets of links among
// them. It returns an error if the trees can't be searched completely.
func Named(h *host.Host, trees []Tree, deny []resolve.DenyPath) ([]Tree, error) {
	d := newDenials(Request{Host: h, Trees: trees, Deny: deny})
	for again := true; again; {
		d.out = Cut{}
		d.visited = 0
		for _, t := range trees {
			if why := d.mask(t, d.aliases(t.Path), d.deny); why != "" {
				return nil, errors.New(why)
			}
		}
		again = len(d.linked) > 0
		d.deny = append(d.deny, d.linked...)
		d.linked = nil
	}
	return d.out.Masks, nil
}

// Split replaces a tree by its entries without some paths. It splits entries that contain such
// a path.
func Split(h *host.Host, t Tree, without []string) ([]Tree, error) {
	hits := make([]hit, len(without))
	for i, p := range without {
		hits[i] = hit{Path: p, dir: true}
	}
	return newDenials(Request{Host: h}).split(t, hits)
}

func (d *denials) split(t Tree, hits []hit) ([]Tree, error) {
	entries, err := d.Host.Entries(t.Path, -1)
	if err != nil {
		return nil, err
	}
	var out []Tree
	if !slices.ContainsFunc(hits, func(h hit) bool { return h.dir }) {
		// Listing is harmless if only files are denied below. The right would also list a
		// denied directory, so then t can't be listed.
		list := t
		list.ListOnly = true
		out = append(out, list)
	}
	in := make(map[string][]hit) // by the entry that they are in
	for _, h := range hits {
		name, _, _ := strings.Cut(strings.TrimPrefix(h.Path[len(t.Path):], "/"), "/")
		in[name] = append(in[name], h)
	}
	for _, e := range entries {
		p := path.Join(t.Path, e.Name())
		inner := in[e.Name()]
		if e.Type()&fs.ModeSymlink != 0 || slices.ContainsFunc(inner, func(h hit) bool { return h.Path == p }) {
			continue // Landlock checks a link's target, not the link
		}
		at := d.Host.Look(p)
		if skip(at.Err) {
			continue
		}
		if at.Presence != host.Present {
			return nil, at.Err
		}
		entry := Tree{
			Path:   p,
			Access: t.Access,
			Mode:   at.Stat.Mode.Type(),
			ID:     at.Stat.ID,
			Origin: t.Origin,
			Data:   t.Data,
			Part:   true,
		}
		if len(inner) > 0 {
			parts, err := d.split(entry, inner)
			if err != nil && !skip(err) {
				return nil, err
			}
			out = append(out, parts...)
			continue
		}
		d.added++
		if d.added > maxSiblings {
			return nil, errTooLarge
		}
		out = append(out, entry)
	}
	return out, nil
}

// skip reports whether an entry is left out because of an error: it is gone, such as a process
// that ended, or can't be read. Nothing in it is allowed then.
func skip(err error) bool {
	return host.Missing(err) || errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrPermission)
}
