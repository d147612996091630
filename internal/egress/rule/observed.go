package rule

import "slices"

// Observed allows all that a rule could allow, to find out which rules are needed. The rule of a verdict
// is then the narrowest that would allow the same. What a denial refuses stays refused, and so do
// the servers that have a cloud machine's passwords.
type Observed struct{ set *Set }

// Observing returns a set that allows more than this one.
func (s *Set) Observing() *Observed { return &Observed{s} }

// Decide decides as Set.Decide does with the rules that are needed. While nothing was read of a
// connection it may carry anything.
func (o *Observed) Decide(a Ask) Verdict {
	if Class(a.Addr) == metadata {
		return o.set.Decide(a)
	}
	var more []Rule
	for _, one := range a.apart() {
		r := o.wanted(one)
		if r == nil {
			continue
		}
		if r.Form == Exact && (a.Seen == nil || a.Seen.Kind != r.Kind) {
			r.Kind = TCP
		}
		more = append(more, *r)
	}
	if more == nil {
		return o.set.Decide(a)
	}
	return NewSet(slices.Concat(o.set.rules, more), o.set.denials).Decide(a)
}

// apart returns the questions for each of the names, before anything is read.
func (a Ask) apart() (all []Ask) {
	if len(a.Names) == 0 {
		return []Ask{{Addr: a.Addr, Port: a.Port}}
	}
	for _, name := range a.Names {
		all = append(all, Ask{Names: []string{name}, Addr: a.Addr, Port: a.Port})
	}
	return all
}

// wanted returns the rule that is missing for a question, or nil: none is, or none would help.
func (o *Observed) wanted(a Ask) (missing *Rule) {
	const most = 2 // for the name, and for its address
	set := o.set
	for range most {
		v := set.Decide(a)
		if v.Allowed() || v.Wanted == nil {
			break
		}
		r := *v.Wanted
		missing = &r
		set = NewSet([]Rule{r}, o.set.denials)
	}
	return missing
}

// Needed returns the rules by which a verdict allows a connection: more than one if the address has several
// names and the connection does not say which one it means.
func (v *Verdict) Needed() []*Rule {
	if len(v.rules) > 0 {
		return v.rules
	}
	if v.Rule == nil {
		return nil
	}
	return []*Rule{v.Rule}
}
