package policy

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/zsbx/zsbx/internal/syntax"
)

// Wider is one thing that a policy asks for beyond another.
type Wider struct {
	Key    string // as in a policy file: fs.rw, net.connect_tcp
	Value  string // in a few words, or quoted as it is written
	Origin Origin
}

// OnlyTightens reports whether merging p over base can take rights away but not add any,
// on either system. base is what was merged before p, or nil. A policy that only tightens
// may come from a stranger. The list has what asks for more: rules, presets, ports,
// sockets, variables, a looser environment, a longer time.
//
// Denials, empty system categories, "allow = false" and lower limits tighten. A list of
// ports does not, because it adds to another list. A host does if base allows all of it.
func (p *Policy) OnlyTightens(base *Policy) (bool, []Wider) {
	if base == nil {
		base = &Policy{}
	}
	var wider []Wider
	seen := make(map[Wider]bool)
	for _, os := range syntax.Systems {
		for _, w := range p.On(os).widens(base.On(os)) {
			if !seen[w] {
				seen[w] = true
				wider = append(wider, w)
			}
		}
	}
	return len(wider) == 0, wider
}

// widens lists what a flat policy asks for beyond base.
func (p *Policy) widens(base *Policy) []Wider {
	var all []Wider
	than := &weaker{Policy: base, hosts: sync.OnceValue(base.hostRules)}
	for i := range keys {
		k := &keys[i]
		if k.wider == nil {
			continue
		}
		before := ""
		if old := k.values(base); old != nil && k.kind.single() {
			before = old[0].Value
		}
		for _, v := range k.values(p) {
			wider := k.wider(v, before, than)
			if l, is := k.at(p).(*Limit); is { // 0 is no limit
				most := k.at(base).(*Limit).Value
				wider = most != 0 && (l.Value == 0 || l.Value > most)
			}
			if wider {
				all = append(all, Wider{k.name, k.describe(v), v.Origin})
			}
		}
	}
	return all
}

// describe returns what a value asks for, in a few words.
func (k *key) describe(v Named) string {
	switch {
	case k.kind == textTable:
		return v.Name + "=" + strconv.Quote(v.Value)
	case k.kind.single(), k.kind == portList:
		return v.Value
	case k.kind == hostList:
		return k.inline(v)
	}
	return strconv.Quote(v.Value)
}

// UntrustedError says that a project's policy asks for something, and that the
// user has not trusted it.
type UntrustedError struct {
	File    string
	Changed bool  // it was trusted with another content
	Unread  error // why it is not known whether it was trusted
	Asks    []Wider
}

// Error names the file, and its first rule that allows something.
func (e *UntrustedError) Error() string {
	if e.Unread != nil {
		return fmt.Sprintf("%s: the project policy allows more than it takes away, "+
			"and whether you trust it can't be read: %v", e.Asks[0].Origin, e.Unread)
	}
	if e.Changed {
		return fmt.Sprintf("%s: the project policy has changed since it was trusted", e.File)
	}
	return fmt.Sprintf("%s: the project policy is not trusted, and it allows more than it takes away", e.Asks[0].Origin)
}
