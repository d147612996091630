package deny

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/glob"
)

// hit is an existing file or directory that is denied.
type hit struct {
	Path string
	by   *barred
	dir  bool
	link bool // a symbolic one

	// closed marks a directory that zsbx can't look into. What is denied
	// may lie in it, and its owner can open it by chmod(2): it is denied
	// whole.
	closed bool
}

// names are those of a path: its own, and those that mounts give it.
func (d *denials) names(p string) []string {
	if len(d.Twice) == 0 {
		return []string{p}
	}
	return append([]string{p}, d.Same(p)...)
}

// place is where the content of a tree may be denied: a path in it by one of its names.
type place struct{ at, name string }

// places are those of a tree, and of what is mounted in it.
func (d *denials) places(tree string) (out []place) {
	for _, at := range append([]string{tree}, d.Twice...) {
		if policy.Within(at, tree) {
			for _, n := range d.names(at) {
				out = append(out, place{at, n})
			}
		}
	}
	return out
}

// hits finds what the denials name in a tree. What does not exist needs
// nothing: the command can't create it in a tree that it can't write.
func (d *denials) hits(tree string, places []place, deny []barred) (out []hit, _ error) {
	if d.Host == nil || d.Host.ReadDir == nil || d.Host.Lstat == nil {
		return nil, errors.New("no host to list it with")
	}
	seen := make(map[hit]bool)
	for _, v := range places {
		found, err := d.find(v, deny)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			names := d.names(h.Path)
			if h.closed { // perhaps to lstat(2), too
				names = append(names, path.Join(v.at, h.Path[len(v.name):]))
			}
			for _, h.Path = range names {
				if h.link {
					if err := d.follow(h); err != nil {
						return nil, err
					}
				} else if (h.Path != tree || h.closed) && policy.Within(h.Path, tree) && !seen[h] {
					seen[h] = true
					out = append(out, h)
				}
			}
		}
	}
	return out, nil
}

// follow has what a denied link leads to denied, in whatever tree that lies: neither
// Landlock nor a mount can close a link itself. In a plain path links were followed when
// it was resolved.
func (d *denials) follow(h hit) error {
	real, _, err := d.Host.RealPath(h.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP):
		return nil // it leads to nothing
	case err != nil:
		return err
	}
	known := func(b barred) bool { return !b.Glob && b.covers(real) }
	allowed := func(t Tree) bool { return policy.Within(real, t.Path) }
	if slices.ContainsFunc(d.Trees, allowed) && !slices.ContainsFunc(d.deny, known) && !slices.ContainsFunc(d.linked, known) {
		d.linked = append(d.linked, barred{DenyPath: policy.DenyPath{Pattern: real, Deny: h.by.Deny, Secret: h.by.Secret}})
	}
	return nil
}

// find looks for what is denied in a place, under the name that it has there.
func (d *denials) find(v place, deny []barred) (out []hit, _ error) {
	var globs []glob.Glob
	for i := range deny {
		b := &deny[i]
		p := b.Pattern
		switch {
		case b.covers(v.name): // what is mounted there
			p = v.at
		case !b.reaches(v.name):
			continue
		case b.Glob:
			globs = append(globs, b.glob)
			continue
		}
		st, err := d.Host.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		h := hit{Path: p, by: b, dir: st.Mode.IsDir()}
		for errors.Is(err, fs.ErrPermission) && h.Path != v.name {
			h = hit{Path: path.Dir(h.Path), by: b, closed: true}
			_, err = d.Host.Lstat(h.Path)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	if len(globs) == 0 {
		return out, nil
	}
	if st, err := d.Host.Lstat(v.name); err == nil && !st.Mode.IsDir() {
		return out, nil // a file that something is mounted on
	}
	set := glob.NewSet(globs)
	found, err := d.walk(v.name, set.At(v.name))
	for tries := 1; errors.Is(err, fs.ErrNotExist) && tries < attempts; tries++ {
		found, err = d.walk(v.name, set.At(v.name))
	}
	for _, h := range found {
		i := slices.IndexFunc(deny, func(b barred) bool { return b.Glob && (b.covers(h.Path) || h.closed && b.reaches(h.Path)) })
		h.by = &deny[max(0, i)]
		out = append(out, h)
	}
	return out, err
}

// attempts are how often a tree is searched in which another command removes directories
// meanwhile. One that was moved may be where nobody has looked, so none is passed over.
const attempts = 5

// walk goes through dir for what the globs name, without following links.
func (d *denials) walk(dir string, globs glob.State) ([]hit, error) {
	entries, err := d.Host.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return []hit{{Path: dir, closed: true}}, nil
	}
	if err != nil {
		return nil, err
	}
	if d.visited += len(entries); d.visited > maxVisited {
		return nil, errTooLarge
	}
	var out []hit
	for _, e := range entries {
		deeper, named := globs.Enter(e.Name())
		switch p := path.Join(dir, e.Name()); {
		case named:
			out = append(out, hit{Path: p, dir: e.IsDir(), link: e.Type()&fs.ModeSymlink != 0})
		case e.IsDir() && len(deeper) > 0:
			found, err := d.walk(p, deeper)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// Existing are the paths in some trees that denials name by now, links included. A tree
// that can't be searched to its end is passed over.
func Existing(host *policy.Host, trees []string, deny []policy.DenyPath) (out []string) {
	if len(deny) == 0 {
		return nil
	}
	d := newDenials(Request{Host: host, Deny: deny})
	for _, b := range d.deny {
		if !b.Glob {
			trees = append(slices.Clip(trees), path.Dir(b.Pattern))
		}
	}
	for _, tree := range trees {
		hits, _ := d.find(place{tree, tree}, d.deny)
		for _, h := range hits {
			if !h.closed {
				out = append(out, h.Path)
			}
		}
	}
	return out
}

// Named are the paths in some directories that denials name, and what links that they name
// lead to. The error is that these can't be searched to their end.
func Named(host *policy.Host, trees []Tree, deny []policy.DenyPath) ([]Tree, error) {
	d := newDenials(Request{Host: host, Trees: trees, Deny: deny})
	for again := true; again; {
		d.out, d.visited = Cut{}, 0
		for _, t := range trees {
			if why := d.mask(t, d.places(t.Path), d.deny); why != "" {
				return nil, errors.New(why)
			}
		}
		again = len(d.linked) > 0
		d.deny, d.linked = append(d.deny, d.linked...), nil
	}
	return d.out.Masks, nil
}

// Split allows the entries of a tree that lead to none of some paths as they are, and
// takes the others apart.
func Split(host *policy.Host, t Tree, without []string) ([]Tree, error) {
	hits := make([]hit, len(without))
	for i, p := range without {
		hits[i] = hit{Path: p, dir: true}
	}
	return newDenials(Request{Host: host}).split(t, hits)
}

func (d *denials) split(t Tree, hits []hit) ([]Tree, error) {
	entries, err := d.Host.ReadDir(t.Path)
	if err != nil {
		return nil, err
	}
	var out []Tree
	if !slices.ContainsFunc(hits, func(h hit) bool { return h.dir }) {
		// Listing is harmless when only files are denied below. A denied
		// directory could be listed by it, so then t can't be listed.
		list := t
		list.ListOnly = true
		out = append(out, list)
	}
	in := make(map[string][]hit) // by the entry that they lie in
	for _, h := range hits {
		name, _, _ := strings.Cut(strings.TrimPrefix(h.Path[len(t.Path):], "/"), "/")
		in[name] = append(in[name], h)
	}
	for _, e := range entries {
		p, inner := path.Join(t.Path, e.Name()), in[e.Name()]
		if e.Type()&fs.ModeSymlink != 0 || slices.ContainsFunc(inner, func(h hit) bool { return h.Path == p }) {
			continue // Landlock looks at a link's target, not at the link
		}
		st, err := d.Host.Lstat(p)
		if skip(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		more := []Tree{{Path: p, Access: t.Access, Mode: st.Mode.Type(), ID: st.ID, Origin: t.Origin, Data: t.Data, Part: true}}
		if len(inner) == 0 {
			if d.added++; d.added > maxSiblings {
				return nil, errTooLarge
			}
		} else if more, err = d.split(more[0], inner); err != nil && !skip(err) {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// skip reports whether something is left out for an error: it is not there any more, as a
// process that ended, or nothing can be learned of it. Nothing in it is allowed then.
func skip(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrPermission)
}
