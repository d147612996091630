package policy

import (
	"fmt"
	"strings"
)

// Globs are many patterns that a walk through a tree looks for at once: what a
// name costs hardly grows with their number, as long as they have names without
// wildcards, or the same ones.
type Globs struct{ root *globNode }

// globNode is a place in patterns that begin alike.
type globNode struct {
	deep  bool                 // it stands for "**": any name leads back to it
	ends  bool                 // a pattern ends here
	names map[string]*globNode // by a name without wildcards
	parts []globEdge           // by one with wildcards
	below *globNode            // by "**"
}

type globEdge struct {
	name GlobName
	key  string
	to   *globNode
}

// NewGlobs puts patterns together.
func NewGlobs(gs []Glob) Globs {
	root := &globNode{}
	for _, g := range gs {
		n := root
		for i := range g.segs {
			n = n.child(&g.segs[i])
		}
		n.ends = n.ends || len(g.segs) > 0
	}
	return Globs{root}
}

// child gives the node that one name leads to, and makes it if there is none.
func (n *globNode) child(name *GlobName) *globNode {
	switch {
	case name.Deep:
		if n.below == nil {
			n.below = &globNode{deep: true}
		}
		return n.below
	case name.Literal:
		if n.names == nil {
			n.names = make(map[string]*globNode)
		}
		if n.names[name.Text] == nil {
			n.names[name.Text] = &globNode{}
		}
		return n.names[name.Text]
	}
	key := fmt.Sprint(name.Parts)
	for _, e := range n.parts {
		if e.key == key {
			return e.to
		}
	}
	n.parts = append(n.parts, globEdge{*name, key, &globNode{}})
	return n.parts[len(n.parts)-1].to
}

// GlobsAt is what is left of patterns in one directory. It is empty if they name
// nothing below it.
type GlobsAt []*globNode

// At gives what is left in dir, an absolute, clean path that none of the
// patterns names.
func (g Globs) At(dir string) GlobsAt {
	at := GlobsAt(nil).with(g.root)
	for rest := strings.TrimPrefix(dir, "/"); rest != "" && len(at) > 0; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		at, _ = at.Enter(name)
	}
	return at
}

// Enter gives what is left in the directory of that name, and reports whether a
// pattern names the entry, and with it all below.
func (at GlobsAt) Enter(name string) (next GlobsAt, named bool) {
	for _, n := range at {
		if n.deep {
			next, named = next.with(n), named || n.ends
		}
		if to := n.names[name]; to != nil {
			next, named = next.with(to), named || to.ends
		}
		for i := range n.parts {
			if e := &n.parts[i]; e.name.match(name) {
				next, named = next.with(e.to), named || e.to.ends
			}
		}
	}
	return next, named
}

// with adds a node, and those after it that take no name.
func (at GlobsAt) with(n *globNode) GlobsAt {
	for ; n != nil; n = n.below {
		for _, have := range at {
			if have == n {
				return at
			}
		}
		at = append(at, n)
	}
	return at
}
