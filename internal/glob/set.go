package glob

import (
	"slices"
	"strings"
)

// Set is many patterns that a walk through a tree looks for at once. The cost of a name
// hardly grows with their number, as long as their names have no wildcards, or the same
// ones.
type Set struct{ root *node }

// node is a position in patterns with the same beginning.
type node struct {
	deep  bool             // it stands for "**": any name leads back to it
	ends  bool             // a pattern ends here
	names map[string]*node // by a name without wildcards
	parts []edge           // by one with wildcards
	below *node            // by "**"
}

type edge struct {
	name Name
	to   *node
}

// NewSet makes a set of patterns.
func NewSet(gs []Glob) Set {
	root := &node{}
	for _, g := range gs {
		n := root
		for i := range g.names {
			n = n.child(&g.names[i])
		}
		n.ends = n.ends || len(g.names) > 0
	}
	return Set{root}
}

// child returns the node that one name leads to, and makes it if there is none.
func (n *node) child(name *Name) *node {
	switch {
	case name.Deep:
		if n.below == nil {
			n.below = &node{deep: true}
		}
		return n.below
	case name.Literal:
		if n.names == nil {
			n.names = make(map[string]*node)
		}
		if n.names[name.Text] == nil {
			n.names[name.Text] = &node{}
		}
		return n.names[name.Text]
	}
	for _, e := range n.parts {
		if e.name.Pattern == name.Pattern {
			return e.to
		}
	}
	n.parts = append(n.parts, edge{*name, &node{}})
	return n.parts[len(n.parts)-1].to
}

// State is what is left of patterns in one directory. It is empty if they can match
// nothing below it.
type State []*node

// At returns what is left in dir, an absolute, clean path that no pattern matches.
func (g Set) At(dir string) State {
	at, _ := g.walk(dir)
	return at
}

// walk goes down a path until nothing is left of the patterns, or one of them matches.
func (g Set) walk(path string) (at State, named bool) {
	at = at.with(g.root)
	for rest := strings.TrimPrefix(path, "/"); rest != "" && len(at) > 0 && !named; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		at, named = at.Enter(name)
	}
	return at, named
}

// Enter returns what is left in the directory of that name, and reports whether a
// pattern matches the entry, and with it all below.
func (at State) Enter(name string) (next State, named bool) {
	for _, n := range at {
		if n.deep {
			next = next.with(n)
			named = named || n.ends
		}
		if to := n.names[name]; to != nil {
			next = next.with(to)
			named = named || to.ends
		}
		for i := range n.parts {
			if e := &n.parts[i]; e.name.match(name) {
				next = next.with(e.to)
				named = named || e.to.ends
			}
		}
	}
	return next, named
}

// Names reports whether a pattern matches the entry of that name. It is Enter for a file, in
// which nothing can be.
func (at State) Names(name string) bool {
	for _, n := range at {
		if n.deep && n.ends {
			return true
		}
		if to := n.names[name]; to != nil && to.ends {
			return true
		}
		for i := range n.parts {
			e := &n.parts[i]
			if e.to.ends && e.name.match(name) {
				return true
			}
		}
	}
	return false
}

// Literals returns the names that patterns match in a directory which has no others in it. ok is
// false if a wildcard could match there, too.
func (at State) Literals() (names []string, ok bool) {
	for _, n := range at {
		if n.deep && n.ends {
			return nil, false
		}
		for i := range n.parts {
			if n.parts[i].to.ends {
				return nil, false
			}
		}
		for name, to := range n.names {
			if to.ends && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, true
}

// with adds a node, and those after it that are reached without a name ("**").
func (at State) with(n *node) State {
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
