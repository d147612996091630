package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Merge adds up policies, the weakest first. Lists add up, single values of a later policy
// override those of an earlier one, and a category of FS.System replaces the earlier one.
// Order and origins are kept, and no rule is lost. The arguments are not changed and share
// no memory with the result. nil counts as empty.
//
// What a later policy says for every system also overrides what an earlier one says for
// only one system.
func Merge(ps ...*Policy) *Policy {
	sum := &Policy{}
	rules := 0
	names := 0
	for _, p := range ps {
		if p != nil {
			rules += len(p.FS.Rules)
			names += len(p.Env.Allow)
		}
	}
	sum.FS.Rules = slices.Grow(sum.FS.Rules, rules)
	sum.Env.Allow = slices.Grow(sum.Env.Allow, names)
	for _, p := range ps {
		if p == nil {
			continue
		}
		for _, os := range systems {
			mergeSystem(sum.part(os), p, *p.part(os))
		}
		sum.add(p)
	}
	return sum
}

// mergeSystem adds one system's overrides to the sum of the earlier ones, which are
// themselves overridden by what p says for all systems.
func mergeSystem(at **Policy, p, system *Policy) {
	if sum := *at; sum != nil {
		for i := range keys {
			if k := &keys[i]; k.kind.overrides() {
				k.merge(sum, p)
			}
		}
		if p.Guard.Off {
			sum.Guard.Lists = nil
		}
	}
	if system != nil {
		*at = cmp.Or(*at, &Policy{})
		(*at).add(system)
	}
}

// add merges p, without its parts for single systems, over sum.
func (sum *Policy) add(p *Policy) {
	sum.FS.Rules = append(sum.FS.Rules, p.FS.Rules...) // of several keys, in the order they were written
	sum.FS.Cache = append(sum.FS.Cache, p.FS.Cache...)
	sum.Closed = append(sum.Closed, p.Closed...)
	if p.Guard.Off {
		sum.Guard = Guard{Off: true, Words: sum.Guard.Words}
	}
	for i := range keys {
		keys[i].merge(sum, p)
	}
}

// on returns the policy with the overrides for one system applied.
func (p *Policy) on(os string) *Policy {
	flat := &Policy{}
	flat.add(p)
	flat.add(p.forSystem(os))
	return flat
}

// systems are those that a policy has overrides for.
var systems = []string{"linux", "macos"}

// part returns where a policy has the overrides for one system.
func (p *Policy) part(os string) **Policy {
	if os == "macos" {
		return &p.MacOS
	}
	return &p.Linux
}

// parts returns the policy and its overrides for single systems, if it has any.
func (p *Policy) parts() []*Policy {
	return slices.DeleteFunc([]*Policy{p, p.Linux, p.MacOS}, func(p *Policy) bool { return p == nil })
}

// forSystem returns the overrides for one system, never nil.
func (p *Policy) forSystem(os string) *Policy { return cmp.Or(*p.part(os), &Policy{}) }

// GuardOn returns the policy's guard on one system.
func (p *Policy) GuardOn(os string) *Guard {
	if len(p.Guard.Lists)+len(p.forSystem(os).Guard.Lists) == 0 {
		return &Guard{} // most have none, and merging costs time
	}
	return &p.on(os).Guard
}

// LimitsOn returns the policy's limits on one system.
func (p *Policy) LimitsOn(os string) (l Limits) {
	if p.Limits != l || p.forSystem(os).Limits != l { // as above
		l = p.on(os).Limits
	}
	return l
}

// AuditLog returns the log that the policy asks for on one machine, with the defaults, or
// nil. Dir is absolute; it need not exist, and no link is followed.
func (p *Policy) AuditLog(h Host) (*Audit, error) {
	if p.Audit == (Audit{}) && p.forSystem(h.OS).Audit == (Audit{}) {
		return nil, nil
	}
	a := p.on(h.OS).Audit
	dir, err := (&view{Host: h}).absolute(cmp.Or(a.Dir.Value, "${XDG_STATE_HOME:-~/.local/state}/zsbx/audit"))
	if err != nil {
		msg := fmt.Sprintf("the audit log's directory %q", a.Dir.Value)
		return nil, Errors{{Origin: a.Dir.Origin, Code: CodeValue, Msg: msg, Err: err}}
	}
	a.Dir.Value = dir
	a.Keep.Value = cmp.Or(a.Keep.Value, "90")
	return &a, nil
}

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
// ports does not, because it adds to another list.
func (p *Policy) OnlyTightens(base *Policy) (bool, []Wider) {
	if base == nil {
		base = &Policy{}
	}
	var wider []Wider
	seen := make(map[Wider]bool)
	for _, os := range systems {
		for _, w := range p.on(os).widens(base.on(os)) {
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
			wider := k.wider(v.Value, before, base)
			if l, is := k.at(p).(*Limit); is { // 0 is no limit
				than := k.at(base).(*Limit).Value
				wider = than != 0 && (l.Value == 0 || l.Value > than)
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
	}
	return strconv.Quote(v.Value)
}

// unshares reports whether something private becomes shared.
func unshares(after, before string, _ *Policy) bool {
	return before == wordPrivate && after == wordShared
}

// looser reports whether an environment mode lets more through. Mode "vars" does if base
// names variables that control a loader, which scrubbed mode would hold back.
func looser(after, before string, base *Policy) bool {
	return slices.Index(envModes, after) > slices.Index(envModes, cmp.Or(before, EnvScrubbed)) ||
		after == EnvVars && slices.ContainsFunc(base.Env.Allow, func(n Named) bool { return steersLoader(n.Value) })
}
