package deny

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

// Tree is a rule of the policy on its way into the ruleset.
type Tree struct {
	Path   string
	Access policy.Access
	Mode   fs.FileMode
	ID     policy.FileID
	Origin policy.Origin

	// ListOnly marks a directory that was taken apart: it may be listed,
	// nothing below it is allowed by this rule.
	ListOnly bool
}

// Cut is what a policy allows less what it denies. Landlock has no denial: what
// a rule on a directory allows holds for all below. A denial that covers a
// rule's own path takes the rule out. One inside a read-only tree is held by
// allowing the tree's other entries one by one. One inside a writable tree can't
// be held that way, since what is made there later would not be allowed: it
// takes a mount that masks it.
type Cut struct {
	Trees  []Tree            // what is left
	Masks  []masked          // what has to be masked in them
	Behind []policy.DenyPath // the denials that the masks stand for
	Later  []policy.DenyPath // those of them that name what may still be made
	Unheld []unheld
	Linked []Linked
}

// masked is a denied file or directory in a writable tree.
type masked struct {
	Path   string
	Dir    bool
	ID     policy.FileID
	Origin policy.Origin
}

// unheld is a denial that can't be enforced.
type unheld struct {
	Deny policy.DenyPath
	Why  string
}

// Request is what a policy allows and denies on a machine.
type Request struct {
	Trees []Tree
	Deny  []policy.DenyPath
	Host  *policy.Host

	NoMasks string // why nothing can be masked here, or ""

	// Private is a directory below which trees are masked, not taken apart, or
	// "": where the command has its own, Landlock's rights hold in all of them.
	Private string
}

// maxMasks bounds what is masked. More than that is not held.
const maxMasks = 4000

// Denials takes denials out of trees.
type Denials struct {
	Host    *policy.Host
	trees   []Tree
	Deny    []Barred
	noMasks string
	private string
	visited int
	added   int
	names   manyNames
	out     Cut
}

// Barred is a DenyPath with its pattern read.
type Barred struct {
	policy.DenyPath
	glob policy.Glob
}

var errTooLarge = errors.New("the tree is too large to be taken apart")

// Subtract takes the denials out of the trees. It is pure but for looking at
// files through the host.
func Subtract(q Request) Cut {
	d := NewDenials(q)
	if len(d.Deny) == 0 {
		d.out.Trees = q.Trees
	} else {
		for _, t := range q.Trees {
			d.out.Trees = append(d.out.Trees, d.apply(t)...)
		}
	}
	d.out.Linked = d.Links()
	return d.out
}

// NewDenials reads the patterns. One that can't be read denies nothing.
func NewDenials(q Request) *Denials {
	d := &Denials{Host: q.Host, trees: q.Trees, noMasks: q.NoMasks, private: q.Private}
	for _, p := range q.Deny {
		n := Barred{DenyPath: p}
		if p.Glob {
			var err error
			if n.glob, err = policy.ParseGlob(p.Pattern); err != nil {
				d.fail(p, err.Error())
				continue
			}
		}
		d.Deny = append(d.Deny, n)
	}
	return d
}

func (d *Denials) fail(p policy.DenyPath, why string) {
	d.out.Unheld = append(d.out.Unheld, unheld{p, why})
}

// apply takes the denials out of one tree. When that can't be done the tree
// stays whole, and the denials are unheld.
func (d *Denials) apply(t Tree) []Tree {
	var inside []Barred
	for _, deny := range d.Deny {
		if deny.covers(t.Path) {
			return nil
		}
		if t.Mode.IsDir() && deny.Reaches(t.Path) {
			inside = append(inside, deny)
		}
	}
	if len(inside) == 0 {
		return []Tree{t}
	}
	out, why := []Tree{t}, ""
	// Nobody asked for these. They are masked or open: a home directory taken apart
	// could not be listed.
	secrets, inside := parted(inside)
	if open := d.mask(t, secrets); open != "" {
		for _, s := range secrets {
			d.fail(s.DenyPath, open)
		}
	}
	if len(inside) == 0 {
		return out
	}
	private := d.private != "" && policy.Within(t.Path, d.private)
	if t.Access&policy.Write != 0 || private {
		if why = d.mask(t, inside); why != "" {
			why = fmt.Sprintf("%s is writable or in a private home, so its other entries can't be allowed one by one; %s", t.Path, why)
		}
	} else if apart, err := d.TakeApart(t, inside); err != nil {
		why = fmt.Sprintf("%s can't be allowed entry by entry: %v", t.Path, err)
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

// TakeApart allows t's entries one by one, without those that are denied.
func (d *Denials) TakeApart(t Tree, deny []Barred) ([]Tree, error) {
	if d.Host == nil || d.Host.ReadDir == nil || d.Host.Lstat == nil {
		return nil, errors.New("no host to list it with")
	}
	hit, err := d.hits(t.Path, deny)
	if err != nil || len(hit) == 0 {
		return []Tree{t}, err
	}
	out, err := d.Split(t, hit)
	return d.withoutLinks(out, hit, deny), err
}

// Hit is an existing file or directory that is denied.
type Hit struct {
	Path string
	Dir  bool

	// Closed marks a directory that zsbx can't look into. What is denied
	// may lie in it, and its owner can open it by chmod(2): it is denied
	// whole.
	Closed bool
}

// hits finds what the denials name below root. What does not exist needs
// nothing: the command can't create it in a tree that it can't write.
func (d *Denials) hits(root string, deny []Barred) ([]Hit, error) {
	var out []Hit
	var globs []Barred
	for _, p := range deny {
		if p.Glob {
			globs = append(globs, p)
			continue
		}
		st, err := d.Host.Lstat(p.Pattern)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		h := Hit{Path: p.Pattern, Dir: st.Mode.IsDir()}
		for errors.Is(err, fs.ErrPermission) && h.Path != root {
			h = Hit{Path: path.Dir(h.Path), Closed: true}
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
	found, err := d.Walk(root, Together(globs).At(root))
	return append(out, found...), err
}

// Together are the patterns of several denials, for one walk.
func Together(globs []Barred) policy.Globs {
	gs := make([]policy.Glob, len(globs))
	for i := range globs {
		gs[i] = globs[i].glob
	}
	return policy.NewGlobs(gs)
}

// Walk goes through dir for what the globs name, without following links.
func (d *Denials) Walk(dir string, globs policy.GlobsAt) ([]Hit, error) {
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
			out = append(out, Hit{Path: p, Dir: e.IsDir()})
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
		sub := Tree{Path: p, Access: t.Access, Mode: st.Mode.Type(), ID: st.ID, Origin: t.Origin}
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

// covers reports whether a denial takes away path itself.
func (d *Barred) covers(p string) bool {
	if d.Glob {
		return d.glob.Match(p)
	}
	return policy.Within(p, d.Pattern)
}

// Reaches reports whether a denial that doesn't cover dir may name something
// below it.
func (d *Barred) Reaches(dir string) bool {
	if d.Glob {
		return d.glob.MayMatchBelow(dir)
	}
	return policy.Within(d.Pattern, dir)
}
