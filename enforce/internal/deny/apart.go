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

// takeApart allows t's entries one by one, without those that are denied.
func (d *Denials) takeApart(t Tree, deny []Barred) ([]Tree, error) {
	if d.Host == nil || d.Host.ReadDir == nil || d.Host.Lstat == nil {
		return nil, errors.New("no host to list it with")
	}
	hit, err := d.hits(t.Path, deny)
	if err != nil || len(hit) == 0 {
		return []Tree{t}, err
	}
	for _, h := range hit {
		d.note(h.Path)
	}
	return d.Split(t, hit)
}

// note remembers which file a denied path is.
func (d *Denials) note(p string) {
	if st, err := d.Host.Lstat(p); err == nil && !st.Mode.IsDir() {
		d.files[st.ID] = true
	}
}

// withoutLinks leaves out the rules for denied files by other names (hard
// links): a rule on a file is one on its inode, and would open the denied name.
// The other name in a directory that is allowed whole stays open: Landlock has
// no means against that, and the kernel does not tell where it is.
func (d *Denials) withoutLinks(rules []Tree) []Tree {
	for _, b := range d.Deny {
		if !b.Glob && !b.Secret && d.Host != nil && d.Host.Lstat != nil {
			d.note(b.Pattern)
		}
	}
	return slices.DeleteFunc(rules, func(t Tree) bool { return !t.Mode.IsDir() && d.files[t.ID] })
}

// Hit is an existing file or directory that is denied.
type Hit struct {
	Path string
	Dir  bool

	// Closed marks a directory that zsbx can't look into. What is denied
	// may lie in it, and its owner can open it by chmod(2): it is denied
	// whole.
	Closed bool

	link bool   // a symbolic one
	as   string // the name that is denied, where a mount shows it as Path
}

// viewsOf are the names by which a tree, and what is mounted in it, may be denied: its
// own first.
func (d *Denials) viewsOf(tree string, all []View) []View {
	out := []View{{tree, tree}}
	for _, v := range all {
		rest, below := strings.CutPrefix(tree+"/", strings.TrimSuffix(v.At, "/")+"/")
		if below {
			v = View{tree, path.Join(v.Name, rest)}
		}
		if (below || policy.Within(v.At, tree)) && d.same(v) {
			out = append(out, v)
		}
	}
	return out
}

// same reports whether both names lead to one file. Another mount may lie over either.
func (d *Denials) same(v View) bool {
	if v.At == v.Name {
		return true
	}
	if d.Host == nil || d.Host.Lstat == nil {
		return false
	}
	here, err1 := d.Host.Lstat(v.At)
	there, err2 := d.Host.Lstat(v.Name)
	return err1 == nil && err2 == nil && here.ID == there.ID
}

// hits finds what the denials name below the tree. What does not exist needs
// nothing: the command can't create it in a tree that it can't write.
func (d *Denials) hits(root string, deny []Barred) (out []Hit, _ error) {
	for _, v := range d.views {
		found, err := d.seen(root, v, deny)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			h.as = path.Join(v.Name, strings.TrimPrefix(h.Path, v.At))
			switch {
			case h.link:
				if err := d.follow(h, by(deny, h)); err != nil {
					return nil, err
				}
			case h.Closed || d.same(View{h.Path, h.as}):
				out = append(out, h)
			}
		}
	}
	return out, nil
}

// follow has what a denied link leads to denied, in whatever tree that lies: neither
// Landlock nor a mount can close a link itself. In a plain path links were followed when
// it was resolved.
func (d *Denials) follow(h Hit, by policy.DenyPath) error {
	real, _, err := d.Host.RealPath(h.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP):
		return nil // it leads to nothing
	case err != nil:
		return err
	}
	known := func(b Barred) bool { return !b.Glob && b.covers(real) }
	allowed := func(t Tree) bool { return policy.Within(real, t.Path) }
	if slices.ContainsFunc(d.trees, allowed) && !slices.ContainsFunc(d.Deny, known) && !slices.ContainsFunc(d.linked, known) {
		d.linked = append(d.linked, Barred{DenyPath: policy.DenyPath{Pattern: real, Deny: by.Deny, Secret: by.Secret}})
	}
	return nil
}

// seen are the hits in one view.
func (d *Denials) seen(root string, v View, deny []Barred) (out []Hit, _ error) {
	var globs []Barred
	for _, p := range deny {
		at := v.At
		switch {
		case p.covers(v.Name): // the view, not the tree
		case p.Glob:
			globs = append(globs, p)
			continue
		case !p.Reaches(v.Name):
			continue
		default:
			at = path.Join(v.At, p.Pattern[len(v.Name):])
		}
		st, err := d.Host.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		h := Hit{Path: at, Dir: st.Mode.IsDir()}
		for errors.Is(err, fs.ErrPermission) && h.Path != root {
			h = Hit{Path: path.Dir(h.Path), Closed: true}
			_, err = d.Host.Lstat(h.Path)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	globs = slices.DeleteFunc(globs, func(b Barred) bool { return !b.Reaches(v.Name) })
	if len(globs) == 0 {
		return out, nil
	}
	if st, err := d.Host.Lstat(v.At); v.At != root && (err != nil || !st.Mode.IsDir()) {
		return out, nil // a file that something is mounted on
	}
	found, err := d.Walk(v.At, Together(globs).At(v.Name))
	return append(out, found...), err
}

// Together are the patterns of several denials, for one walk.
func Together(globs []Barred) glob.Set {
	gs := make([]glob.Glob, len(globs))
	for i := range globs {
		gs[i] = globs[i].glob
	}
	return glob.NewSet(gs)
}

// Walk goes through dir for what the globs name, without following links.
func (d *Denials) Walk(dir string, globs glob.State) ([]Hit, error) {
	entries, err := d.Host.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return []Hit{{Path: dir, Closed: true}}, nil
	}
	if err != nil {
		return nil, err
	}
	if d.visited += len(entries); d.visited > maxVisited {
		return nil, errTooLarge
	}
	var out []Hit
	for _, e := range entries {
		deeper, named := globs.Enter(e.Name())
		switch p := path.Join(dir, e.Name()); {
		case named:
			out = append(out, Hit{Path: p, Dir: e.IsDir(), link: e.Type()&fs.ModeSymlink != 0})
		case e.IsDir() && len(deeper) > 0:
			found, err := d.Walk(p, deeper)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// Split allows the entries of t that lead to no hit as they are, and takes
// the others apart.
func (d *Denials) Split(t Tree, hits []Hit) ([]Tree, error) {
	entries, err := d.Host.ReadDir(t.Path)
	if err != nil {
		return nil, err
	}
	var out []Tree
	if !slices.ContainsFunc(hits, func(h Hit) bool { return h.Dir }) {
		// Listing is harmless when only files are denied below. A denied
		// directory could be listed by it, so then t can't be listed.
		list := t
		list.ListOnly = true
		out = append(out, list)
	}
	for _, e := range entries {
		p := path.Join(t.Path, e.Name())
		if e.Type()&fs.ModeSymlink != 0 || slices.ContainsFunc(hits, func(h Hit) bool { return h.Path == p }) {
			continue // Landlock looks at a link's target, not at the link
		}
		inner := slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool { return !policy.Within(h.Path, p) })
		st, err := d.Host.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // not there any more, or nothing can be learned of it
		}
		if err != nil {
			return nil, err
		}
		sub := Tree{Path: p, Access: t.Access, Mode: st.Mode.Type(), ID: st.ID, Origin: t.Origin, Data: t.Data}
		if len(inner) == 0 {
			if d.added++; d.added > maxSiblings {
				return nil, errTooLarge
			}
			out = append(out, sub)
			continue
		}
		more, err := d.Split(sub, inner)
		if errors.Is(err, fs.ErrPermission) {
			continue // nothing in it is allowed
		}
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}
