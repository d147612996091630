package deny

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/glob"
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

	// Data says that no symbolic link can be made (policy.Rule).
	Data bool

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
	Views   []View // where mounts show the same twice

	// Private is a directory below which trees are masked, not taken apart, or
	// "": where the command has its own, Landlock's rights hold in all of them.
	Private string
}

// View says that a mount shows at At what is denied or allowed as Name. Landlock's rules
// are bound to inodes: one for either opens both.
type View struct{ At, Name string }

// maxMasks bounds what is masked. More than that is not held.
const maxMasks = 4000

// Denials takes denials out of trees.
type Denials struct {
	Host    *policy.Host
	trees   []Tree
	Deny    []Barred
	noMasks string
	views   []View
	linked  []Barred // what links lead to that a glob names
	private string
	visited int
	added   int
	files   map[policy.FileID]bool // what is denied and no directory
	out     Cut
}

// Barred is a DenyPath with its pattern read.
type Barred struct {
	policy.DenyPath
	glob glob.Glob
}

var errTooLarge = errors.New("the tree is too large to be taken apart")

// Subtract takes the denials out of the trees. It is pure but for looking at
// files through the host.
func Subtract(q Request) Cut {
	d := NewDenials(q)
	if len(d.Deny) == 0 {
		d.out.Trees = q.Trees
		return d.out
	}
	unread := d.out.Unheld
	for {
		d.out, d.visited, d.added = Cut{Unheld: unread}, 0, 0
		for _, t := range q.Trees {
			d.views = d.viewsOf(t.Path, q.Views)
			d.out.Trees = append(d.out.Trees, d.apply(t)...)
		}
		if len(d.linked) == 0 {
			break
		}
		d.Deny, d.linked = append(d.Deny, d.linked...), nil
	}
	d.out.Trees = d.withoutLinks(d.out.Trees)
	return d.out
}

// NewDenials reads the patterns. One that can't be read denies nothing.
func NewDenials(q Request) *Denials {
	d := &Denials{Host: q.Host, trees: q.Trees, noMasks: q.NoMasks, private: q.Private, files: make(map[policy.FileID]bool)}
	for _, p := range q.Deny {
		n := Barred{DenyPath: p}
		if p.Glob {
			var err error
			if n.glob, err = glob.Parse(p.Pattern); err != nil {
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
		reaches := false
		for _, v := range d.views {
			covers := deny.covers(v.Name)
			if covers && v.At == t.Path {
				return nil
			}
			reaches = reaches || covers || deny.Reaches(v.Name)
		}
		if t.Mode.IsDir() && reaches {
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
	} else if apart, err := d.takeApart(t, inside); err != nil {
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
