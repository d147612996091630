package policy

import (
	"cmp"
	"slices"
)

// Merge adds policies up, the first one the weakest: lists add up, scalars of
// a later policy override those of an earlier one, a category of FS.System
// replaces the earlier one's. Order and origins are kept, no rule is lost.
// The arguments are not changed and share no memory with the result; nil
// counts as empty.
//
// What a later policy says for every system also overrides what an earlier
// one says for one system only.
func Merge(ps ...*Policy) *Policy {
	sum := &Policy{}
	for _, p := range ps {
		if p == nil {
			continue
		}
		sum.Linux = mergeSystem(sum.Linux, p, p.Linux)
		sum.MacOS = mergeSystem(sum.MacOS, p, p.MacOS)
		sum.add(p)
	}
	return sum
}

// mergeSystem adds one system's overrides to the sum of those before, of
// which the scalars give way to what p says for all systems.
func mergeSystem(sum, p, system *Policy) *Policy {
	if sum == nil && system == nil {
		return nil
	}
	if sum == nil {
		sum = &Policy{}
	}
	for i := range keys {
		keys[i].override(sum, p, true)
	}
	sum.Env.Set = slices.DeleteFunc(sum.Env.Set, func(v Var) bool {
		return slices.ContainsFunc(p.Env.Set, func(w Var) bool { return v.Name == w.Name })
	})
	sum.Limits.put(&p.Limits, true)
	if p.Guard.Off {
		sum.Guard.Lists = nil
	}
	if system != nil {
		sum.add(system)
	}
	return sum
}

// add merges p, without its parts for single systems, over sum.
func (sum *Policy) add(p *Policy) {
	sum.Presets = append(sum.Presets, p.Presets...)
	sum.FS.Rules = append(sum.FS.Rules, p.FS.Rules...)
	sum.FS.Deny = append(sum.FS.Deny, p.FS.Deny...)
	sum.FS.CacheLinks = append(sum.FS.CacheLinks, p.FS.CacheLinks...)
	sum.FS.CacheCopies = append(sum.FS.CacheCopies, p.FS.CacheCopies...)
	sum.Closed = append(sum.Closed, p.Closed...)
	addPorts(&sum.Net.ConnectTCP, p.Net.ConnectTCP)
	addPorts(&sum.Net.BindTCP, p.Net.BindTCP)
	sum.Net.Unix = append(sum.Net.Unix, p.Net.Unix...)
	sum.Env.Allow = append(sum.Env.Allow, p.Env.Allow...)
	sum.Env.Set = append(sum.Env.Set, p.Env.Set...)
	sum.Limits.put(&p.Limits, false)
	sum.Guard.add(&p.Guard)
	for i := range keys {
		keys[i].override(sum, p, false)
	}
}

// addPorts appends a list unless it is nil; an empty one makes an empty one.
func addPorts(to *[]Port, from []Port) {
	if from != nil {
		*to = append(append(make([]Port, 0, len(*to)+len(from)), *to...), from...)
	}
}

// on gives the policy with the overrides for one system put over it.
func (p *Policy) on(os string) *Policy {
	flat := &Policy{}
	flat.add(p)
	flat.add(p.forSystem(os))
	return flat
}

// forSystem are the overrides for one system; never nil.
func (p *Policy) forSystem(os string) *Policy {
	part := p.Linux
	if os == "macos" {
		part = p.MacOS
	}
	return cmp.Or(part, &Policy{})
}
