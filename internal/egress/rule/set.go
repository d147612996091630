package rule

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Set is a list of rules and of denials. It is never changed: many goroutines may ask it.
type Set struct {
	allowed index
	denied  index

	rules   []Rule
	denials []Rule
}

// Decider decides, as a Set does.
type Decider interface{ Decide(Ask) Verdict }

// NewSet makes a set. Of rules for the same host and port the last one holds. The narrowest rule
// for a name decides: the name itself, then the longest wildcard, then "*".
func NewSet(rules, denials []Rule) *Set {
	s := &Set{rules: slices.Clone(rules), denials: slices.Clone(denials)}
	s.allowed = newIndex(s.rules)
	s.denied = newIndex(s.denials)
	return s
}

// With returns the set with one more rule.
func (s *Set) With(r Rule) *Set { return NewSet(append(slices.Clip(s.rules), r), s.denials) }

// index finds rules by host and port. Each look-up takes a time that does not grow with their number.
type index struct {
	exact map[string]*ports
	below map[string]*ports
	nets  map[netip.Prefix]*ports
	bits  []int // the lengths of prefixes in nets, the longest first
	all   *ports
	local *ports
}

// ports are the rules for one host.
type ports struct {
	by      map[uint16]*Rule
	first   *Rule // any of them; nil for denials
	private *Rule // one that is marked private, or nil
}

func newIndex(rules []Rule) index {
	x := index{
		exact: map[string]*ports{},
		below: map[string]*ports{},
		nets:  map[netip.Prefix]*ports{},
		all:   &ports{},
		local: &ports{},
	}
	for i := range rules {
		x.at(&rules[i]).add(&rules[i])
	}
	slices.SortFunc(x.bits, func(a, b int) int { return cmp.Compare(b, a) })
	x.bits = slices.Compact(x.bits)
	return x
}

// at returns the place for a rule, which it makes if needed.
func (x *index) at(r *Rule) *ports {
	switch r.Form {
	case Exact:
		return place(x.exact, r.Name)
	case Below:
		return place(x.below, r.Name)
	case All:
		return x.all
	case Local:
		return x.local
	}
	if x.nets[r.Prefix] == nil {
		x.bits = append(x.bits, r.Prefix.Bits())
	}
	return place(x.nets, r.Prefix)
}

func place[K comparable](m map[K]*ports, k K) *ports {
	if m[k] == nil {
		m[k] = &ports{}
	}
	return m[k]
}

func (p *ports) add(r *Rule) {
	if p.by == nil {
		p.by = map[uint16]*Rule{}
	}
	p.by[r.Port] = r
	if r.Kind != "" {
		p.first = r
	}
	if r.Private {
		p.private = r
	}
}

// at returns the rule for a port, or nil. A denial without a port is one for all ports. For
// port 0 it is any rule, a private one if there is one, or a denial for all ports.
func (p *ports) at(port uint16) *Rule {
	if p == nil {
		return nil
	}
	if r := p.by[port]; r != nil {
		return r
	}
	if port != 0 {
		return p.by[0]
	}
	if p.private != nil {
		return p.private
	}
	return p.first
}

// places yields what there is for a name, the narrowest first.
func (x *index) places(name string) func(yield func(*ports) bool) {
	return func(yield func(*ports) bool) {
		if p := x.exact[name]; p != nil && !yield(p) {
			return
		}
		for rest := parent(name); rest != ""; rest = parent(rest) {
			if p := x.below[rest]; p != nil && !yield(p) {
				return
			}
		}
		yield(x.all)
	}
}

// parent returns a name without its first label, or "".
func parent(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}

// name returns the narrowest rule for a name and a port, or nil.
func (x *index) name(name string, port uint16) *Rule {
	for p := range x.places(name) {
		if r := p.at(port); r != nil {
			return r
		}
	}
	return nil
}

// hasNames reports whether there are rules for names.
func (x *index) hasNames() bool { return len(x.exact)+len(x.below) > 0 }

// addr returns the rule for an address and a port, or nil.
func (x *index) addr(a netip.Addr, port uint16) *Rule {
	r := x.local.at(port)
	if r != nil && Class(a) == loopback {
		return r
	}
	for _, bits := range x.bits {
		p, err := a.Prefix(bits)
		if err != nil {
			continue
		}
		if r := x.nets[p].at(port); r != nil {
			return r
		}
	}
	return nil
}

// allows is addr for rules that allow: a prefix that has other addresses, too, does not mean
// this machine's.
func (x *index) allows(a netip.Addr, port uint16) *Rule {
	r := x.addr(a, port)
	if r != nil && r.Form == Prefix && Class(a) == loopback && !ofThisMachine(r.Prefix) {
		return nil
	}
	return r
}

// Covers reports whether the set allows all that a rule does: whether the rule is narrower.
// The narrowest of its own rules counts, as in Decide.
func (s *Set) Covers(r *Rule) bool {
	own := s.allowed.governing(r)
	return own != nil && Covers(own, r)
}

// governing returns the rule that decides for the host and port of another one, or nil.
func (x *index) governing(r *Rule) *Rule {
	switch r.Form {
	case Exact:
		return x.name(r.Name, r.Port)
	case Below:
		for name := r.Name; name != ""; name = parent(name) {
			if own := x.below[name].at(r.Port); own != nil {
				return own
			}
		}
		return x.all.at(r.Port)
	case All:
		return x.all.at(r.Port)
	case Local:
		return x.local.at(r.Port)
	}
	return x.prefix(r)
}

// prefix returns a rule for all addresses of a prefix, or nil.
func (x *index) prefix(r *Rule) *Rule {
	own := ofThisMachine(r.Prefix)
	if local := x.local.at(r.Port); own && local != nil {
		return local
	}
	for _, bits := range x.bits {
		p, err := r.Prefix.Addr().Prefix(bits)
		if err != nil || !contains(p, r.Prefix) {
			continue
		}
		if wide := x.nets[p].at(r.Port); wide != nil {
			return wide
		}
	}
	return nil
}

// Problem is what is wrong with a list of rules, not with one alone.
type Problem struct {
	Denial bool // whether Index is one of a denial
	Index  int
	Msg    string
}

// Check returns what is wrong with a list of rules and denials that were written together.
func Check(rules, denials []Rule) []Problem {
	var all []Problem
	type where struct {
		host string
		port uint16
	}
	seen := map[where]int{}
	for i := range rules {
		at := where{rules[i].Host(), rules[i].Port}
		first, twice := seen[at]
		if !twice {
			seen[at] = i
			continue
		}
		if rules[i] != rules[first] {
			const twice = "%s is there twice, with different kinds or marks: one of the two has to go"
			msg := fmt.Sprintf(twice, Quote(rules[i].Host()))
			all = append(all, Problem{Index: i, Msg: msg})
		}
	}
	return append(all, checkDenials(rules, denials)...)
}

// checkDenials returns the denials of what no rule allows anyway.
func checkDenials(rules, denials []Rule) []Problem {
	var all []Problem
	x := newIndex(rules)
	inside := x.parents(rules)
	for i := range denials {
		d := &denials[i]
		if len(rules) == 0 {
			all = append(all, Problem{true, i, "a host is denied, but there are no hosts: none is allowed anyway"})
		} else if !x.touches(d, inside) {
			msg := fmt.Sprintf("no rule allows %s, so there is nothing to deny", Quote(d.String()))
			all = append(all, Problem{true, i, msg})
		}
	}
	return all
}

// parents returns, for each name above a rule's, the rules below it.
func (x *index) parents(rules []Rule) map[string]*ports {
	all := map[string]*ports{}
	for i := range rules {
		for rest := parent(rules[i].Name); rest != ""; rest = parent(rest) {
			place(all, rest).add(&rules[i])
		}
	}
	return all
}

// touches reports whether a denial denies something that a rule may allow.
func (x *index) touches(d *Rule, inside map[string]*ports) bool {
	switch d.Form {
	case Exact:
		return x.name(d.Name, d.Port) != nil
	case Below:
		return x.governing(d) != nil || inside[d.Name].at(d.Port) != nil
	case All:
		return x.hasNames() || x.all.first != nil
	case Local:
		return x.local.at(d.Port) != nil || len(x.nets) > 0
	}
	named := x.hasNames() || x.all.first != nil // their addresses aren't known
	return named || x.overlaps(d)
}

// overlaps reports whether a prefix has an address that a rule for addresses has.
func (x *index) overlaps(d *Rule) bool {
	if ofThisMachine(d.Prefix) && x.local.at(d.Port) != nil {
		return true
	}
	for p, own := range x.nets {
		if p.Overlaps(d.Prefix) && own.at(d.Port) != nil {
			return true
		}
	}
	return false
}
