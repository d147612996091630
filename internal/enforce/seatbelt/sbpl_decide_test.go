package seatbelt_test

import "fmt"

// Decide reports whether op is allowed on t, and which rule decides. It panics if the release
// does not know the operation.
func (p *Profile) Decide(op string, t Target) Decision {
	if !p.bound(op) {
		panic("unknown operation " + op)
	}
	for {
		rs := p.rules[op]
		for i := len(rs) - 1; i >= 0; i-- {
			if rs[i].filter.match(t) {
				return Decision{rs[i].allow, op, rs[i].line}
			}
		}
		if t.XPC != "" {
			return Decision{true, op, 0} // it is unknown whether "(deny default)" applies to these
		}
		if end, ok := p.ends[op]; ok {
			return Decision{end.allow, op, end.line}
		}
		o := operations[op]
		if o.allowed {
			return Decision{true, op, 0}
		}
		if o.parent == "" {
			return Decision{false, op, 0}
		}
		op = o.parent
	}
}

// Allowed returns Decide(op, t).Allowed.
func (p *Profile) Allowed(op string, t Target) bool { return p.Decide(op, t).Allowed }

// Rules returns the number of compiled rules.
func (p *Profile) Rules() int {
	n := len(p.ends)
	for _, rs := range p.rules {
		n += len(rs)
	}
	return n
}

// combine compiles require-any, require-all and require-not.
func combine(head string, args []value) (value, error) {
	classes := ^class(0)
	var fs []*filter
	for _, a := range args {
		if a.filter == nil {
			return value{}, fmt.Errorf("%s takes filters", head)
		}
		classes &= a.filter.classes
		fs = append(fs, a.filter)
	}
	if len(fs) == 0 || head == "require-not" && len(fs) != 1 {
		return value{}, fmt.Errorf("%s takes filters", head)
	}
	f := &filter{name: head, classes: classes}
	switch head {
	case "require-any":
		f.match = requireAny(fs).match
	case "require-all":
		f.match = func(t Target) bool {
			for _, f := range fs {
				if !f.match(t) {
					return false
				}
			}
			return true
		}
	default:
		f.match = func(t Target) bool { return !fs[0].match(t) }
	}
	return value{filter: f}, nil
}

func requireAny(fs []*filter) *filter {
	return &filter{match: func(t Target) bool {
		for _, f := range fs {
			if f.match(t) {
				return true
			}
		}
		return false
	}}
}
