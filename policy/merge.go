package policy

import (
	"cmp"
	"slices"

	"github.com/zsbx/zsbx/internal/syntax"
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
		for _, os := range syntax.Systems {
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

// On returns the policy with the overrides for one system applied.
func (p *Policy) On(os string) *Policy {
	flat := &Policy{}
	flat.add(p)
	flat.add(p.forSystem(os))
	return flat
}

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
	return &p.On(os).Guard
}

// LimitsOn returns the policy's limits on one system.
func (p *Policy) LimitsOn(os string) (l Limits) {
	if p.Limits != l || p.forSystem(os).Limits != l { // as above
		l = p.On(os).Limits
	}
	return l
}

// AuditOn returns the policy's audit log on one system.
func (p *Policy) AuditOn(os string) (a Audit) {
	if p.Audit != a || p.forSystem(os).Audit != a { // as above
		a = p.On(os).Audit
	}
	return a
}
