package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/policy"
)

// The bounds of what is spent on a denial inside a read-only tree.
const (
	maxSiblings = 10_000  // rules that take the place of the tree's one
	maxVisited  = 100_000 // directory entries looked at
)

// tree is a rule of the policy on its way into the ruleset.
type tree struct {
	path   string
	access policy.Access
	mode   fs.FileMode
	id     policy.FileID
	origin policy.Origin

	// listOnly marks a directory that was taken apart: it may be listed,
	// nothing below it is allowed by this rule.
	listOnly bool
}

// cut is what a policy allows less what it denies. Landlock has no denial: what
// a rule on a directory allows holds for all below. A denial that covers a
// rule's own path takes the rule out. One inside a read-only tree is held by
// allowing the tree's other entries one by one. One inside a writable tree can't
// be held that way, since what is made there later would not be allowed: it
// takes a mount that masks it.
type cut struct {
	trees  []tree            // what is left
	masks  []masked          // what has to be masked in them
	behind []policy.DenyPath // the denials that the masks stand for
	later  []policy.DenyPath // those of them that name what may still be made
	unheld []unheld
	linked []linked
}

// masked is a denied file or directory in a writable tree.
type masked struct {
	path   string
	dir    bool
	id     policy.FileID
	origin policy.Origin
}

// unheld is a denial that can't be enforced.
type unheld struct {
	deny policy.DenyPath
	why  string
}

// denyRequest is what a policy allows and denies on a machine.
type denyRequest struct {
	trees []tree
	deny  []policy.DenyPath
	host  *policy.Host

	noMasks string // why nothing can be masked here, or ""
}

// maxMasks bounds what is masked. More than that is not held.
const maxMasks = 4000

// denials takes denials out of trees.
type denials struct {
	host    *policy.Host
	trees   []tree
	deny    []barred
	noMasks string
	visited int
	added   int
	names   manyNames
	out     cut
}

// barred is a DenyPath with its pattern read.
type barred struct {
	policy.DenyPath
	glob policy.Glob
}

var errTooLarge = errors.New("the tree is too large to be taken apart")

// subtract takes the denials out of the trees. It is pure but for looking at
// files through the host.
func subtract(q denyRequest) cut {
	d := newDenials(q)
	if len(d.deny) == 0 {
		d.out.trees = q.trees
	} else {
		for _, t := range q.trees {
			d.out.trees = append(d.out.trees, d.apply(t)...)
		}
	}
	d.out.linked = d.links()
	return d.out
}

// newDenials reads the patterns. One that can't be read denies nothing.
func newDenials(q denyRequest) *denials {
	d := &denials{host: q.host, trees: q.trees, noMasks: q.noMasks}
	for _, p := range q.deny {
		n := barred{DenyPath: p}
		if p.Glob {
			var err error
			if n.glob, err = policy.ParseGlob(p.Pattern); err != nil {
				d.fail(p, err.Error())
				continue
			}
		}
		d.deny = append(d.deny, n)
	}
	return d
}

func (d *denials) fail(p policy.DenyPath, why string) {
	d.out.unheld = append(d.out.unheld, unheld{p, why})
}

// apply takes the denials out of one tree. When that can't be done the tree
// stays whole, and the denials are unheld.
func (d *denials) apply(t tree) []tree {
	var inside []barred
	for _, deny := range d.deny {
		if deny.covers(t.path) {
			return nil
		}
		if t.mode.IsDir() && deny.reaches(t.path) {
			inside = append(inside, deny)
		}
	}
	if len(inside) == 0 {
		return []tree{t}
	}
	out, why := []tree{t}, ""
	if t.access&policy.Write != 0 {
		if why = d.mask(t, inside); why != "" {
			why = fmt.Sprintf("%s is writable, so that its other entries can't be allowed one by one; %s", t.path, why)
		}
	} else if apart, err := d.takeApart(t, inside); err != nil {
		why = fmt.Sprintf("%s can't be allowed entry by entry: %v", t.path, err)
	} else {
		out = apart
	}
	if why != "" {
		for _, deny := range inside {
			d.fail(deny.DenyPath, "Landlock has no denials, and "+why)
		}
	}
	return out
}

// mask has what the denials name in a writable tree masked. It says why that
// can't be, or "".
func (d *denials) mask(t tree, inside []barred) string {
	if d.noMasks != "" {
		return "no mount namespace: " + d.noMasks
	}
	hits, err := d.hits(t.path, inside)
	if err != nil {
		return err.Error()
	}
	for _, h := range hits {
		if err := d.maskOne(h, by(inside, h)); err != nil {
			return err.Error()
		}
	}
	for _, b := range inside {
		if b.Glob || !slices.ContainsFunc(hits, func(h hit) bool { return h.path == b.Pattern }) {
			d.out.later = append(d.out.later, b.DenyPath)
		}
		d.out.behind = append(d.out.behind, b.DenyPath)
	}
	return ""
}

// maskOne masks one hit. A link can't be masked: what it leads to is, if the
// link was matched by a glob; in a plain path links were followed when it was
// resolved.
func (d *denials) maskOne(h hit, deny policy.DenyPath) error {
	real, st, err := d.host.RealPath(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a link to nothing
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(d.trees, func(t tree) bool { return within(real, t.path) }) {
		return nil // the policy does not let the command there at all
	}
	d.names.note(real, st, deny)
	if len(d.out.masks) >= maxMasks {
		return fmt.Errorf("it names more than %d files", maxMasks)
	}
	d.out.masks = append(d.out.masks, masked{path: real, dir: st.Mode.IsDir(), id: st.ID, origin: deny.Deny.Origin})
	return nil
}

// takeApart allows t's entries one by one, without those that are denied.
func (d *denials) takeApart(t tree, deny []barred) ([]tree, error) {
	if d.host == nil || d.host.ReadDir == nil || d.host.Lstat == nil {
		return nil, errors.New("nothing to list it with")
	}
	hit, err := d.hits(t.path, deny)
	if err != nil || len(hit) == 0 {
		return []tree{t}, err
	}
	out, err := d.split(t, hit)
	return d.withoutLinks(out, hit, deny), err
}

// hit is an existing file or directory that is denied.
type hit struct {
	path string
	dir  bool

	// closed marks a directory that zsbx can't look into. What is denied
	// may lie in it, and its owner can open it by chmod(2): it is denied
	// whole.
	closed bool
}

// hits finds what the denials name below root. What does not exist needs
// nothing: the command can't create it in a tree that it can't write.
func (d *denials) hits(root string, deny []barred) ([]hit, error) {
	var out []hit
	var globs []barred
	for _, p := range deny {
		if p.Glob {
			globs = append(globs, p)
			continue
		}
		st, err := d.host.Lstat(p.Pattern)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		h := hit{path: p.Pattern, dir: st.Mode.IsDir()}
		for errors.Is(err, fs.ErrPermission) && h.path != root {
			h = hit{path: path.Dir(h.path), closed: true}
			_, err = d.host.Lstat(h.path)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	if len(globs) == 0 {
		return out, nil
	}
	found, err := d.walk(root, together(globs).At(root))
	return append(out, found...), err
}

// together are the patterns of several denials, for one walk.
func together(globs []barred) policy.Globs {
	gs := make([]policy.Glob, len(globs))
	for i := range globs {
		gs[i] = globs[i].glob
	}
	return policy.NewGlobs(gs)
}

// walk goes through dir for what the globs name, without following links.
func (d *denials) walk(dir string, globs policy.GlobsAt) ([]hit, error) {
	entries, err := d.host.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return []hit{{path: dir, closed: true}}, nil
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
			out = append(out, hit{path: p, dir: e.IsDir()})
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

// split allows the entries of t that lead to no hit as they are, and takes
// the others apart.
func (d *denials) split(t tree, hits []hit) ([]tree, error) {
	entries, err := d.host.ReadDir(t.path)
	if err != nil {
		return nil, err
	}
	var out []tree
	if !slices.ContainsFunc(hits, func(h hit) bool { return h.dir }) {
		// Listing is harmless when only files are denied below. A denied
		// directory could be listed by it, so then t can't be listed.
		list := t
		list.listOnly = true
		out = append(out, list)
	}
	for _, e := range entries {
		p := path.Join(t.path, e.Name())
		if e.Type()&fs.ModeSymlink != 0 || slices.ContainsFunc(hits, func(h hit) bool { return h.path == p }) {
			continue // Landlock looks at a link's target, not at the link
		}
		inner := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return !within(h.path, p) })
		st, err := d.host.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // not there any more, or nothing to be had of it
		}
		if err != nil {
			return nil, err
		}
		sub := tree{path: p, access: t.access, mode: st.Mode.Type(), id: st.ID, origin: t.origin}
		if len(inner) == 0 {
			if d.added++; d.added > maxSiblings {
				return nil, errTooLarge
			}
			out = append(out, sub)
			continue
		}
		more, err := d.split(sub, inner)
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

// covers says whether a denial takes away path itself.
func (d *barred) covers(p string) bool {
	if d.Glob {
		return d.glob.Match(p)
	}
	return within(p, d.Pattern)
}

// reaches says whether a denial that doesn't cover dir may name something
// below it.
func (d *barred) reaches(dir string) bool {
	if d.Glob {
		return d.glob.MayMatchBelow(dir)
	}
	return within(d.Pattern, dir)
}
