package policy

import (
	"slices"
	"strconv"
	"strings"
)

// Wider is one thing that a policy asks for beyond another.
type Wider struct {
	Key    string // as in a policy file: fs.rw, net.connect_tcp
	Value  string // in a few words, or quoted as it is written
	Origin Origin
}

// OnlyTightens reports whether putting p over base can take rights away but
// not add any, on either system; base is what was merged before it, nil for
// nothing. Such a policy may come from a stranger. What it holds against it
// is what asks for more: rules, presets, ports, sockets, variables, a
// looser environment, a longer time.
//
// Denials, empty system categories, "allow = false" and lower limits tighten.
// A list of ports does not: next to another list it adds to it.
func (p *Policy) OnlyTightens(base *Policy) (bool, []Wider) {
	if base == nil {
		base = &Policy{}
	}
	var wider []Wider
	for _, os := range []string{"linux", "macos"} {
		wider = append(wider, p.on(os).widens(base.on(os))...)
	}
	wider = compactWider(wider)
	return len(wider) == 0, wider
}

// compactWider removes repetitions and keeps the order.
func compactWider(all []Wider) []Wider {
	seen := make(map[Wider]bool, len(all))
	return slices.DeleteFunc(all, func(w Wider) bool {
		old := seen[w]
		seen[w] = true
		return old
	})
}

// widens lists what a flat policy asks for beyond base.
func (p *Policy) widens(base *Policy) []Wider {
	var all []Wider
	for i := range keys {
		k := &keys[i]
		list, said := k.values(p)
		if k.wider == nil || !said {
			continue
		}
		c := change{base: base}
		if before, said := k.values(base); said && k.kind >= scalar {
			c.before = before[0].text
		}
		for _, v := range list {
			c.after = v.text
			l, isLimit := k.at(p).(Limit)
			if isLimit && !longer(*l.Value, *k.at(base).(Limit).Value) || !k.wider(c) {
				continue
			}
			all = append(all, Wider{k.full(), k.describe(v), v.from})
		}
	}
	return all
}

// describe is what a value asks for, in a few words.
func (k *key) describe(v value) string {
	switch {
	case k.kind == textTable:
		return v.name + "=" + strconv.Quote(v.text)
	case v.create:
		return strconv.Quote(v.text) + ", made when it is missing"
	case k.kind == limit && strings.Trim(v.text, "0s") == "":
		return "none"
	case k.kind >= scalar, k.kind == portList:
		return v.text
	}
	return strconv.Quote(v.text)
}

// unshares reports whether something private becomes shared.
func unshares(c change) bool { return c.before == wordPrivate && c.after == wordShared }

// looser reports whether an environment mode lets more through: scrubbed mode would
// hold back a loader's variables, which mode "vars" does not.
func looser(c change) bool {
	to := EnvMode(c.after)
	return looseness(to) > looseness(EnvMode(c.before)) ||
		to == EnvVars && slices.ContainsFunc(c.base.Env.Allow, func(n Named) bool { return steersLoader(n.Value) })
}

// longer compares limits, of which 0 is none.
func longer(limit, than int64) bool {
	return than != 0 && (limit == 0 || limit > than)
}

// looseness orders the environment modes. One that is not known is the
// loosest.
func looseness(m EnvMode) int {
	switch m {
	case EnvVars:
		return 0
	case EnvScrubbed, "":
		return 1
	case EnvSanitized:
		return 2
	case EnvInherit:
		return 3
	}
	return 4
}
