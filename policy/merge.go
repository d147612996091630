package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
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
	sum, rules, names := &Policy{}, 0, 0
	for _, p := range ps {
		if p != nil {
			rules, names = rules+len(p.FS.Rules), names+len(p.Env.Allow)
		}
	}
	sum.FS.Rules, sum.Env.Allow = slices.Grow(sum.FS.Rules, rules), slices.Grow(sum.Env.Allow, names)
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

// mergeSystem adds one system's overrides to the sum of those before, which give way to
// what p says for all systems.
func mergeSystem(at **Policy, p, system *Policy) {
	if sum := *at; sum != nil {
		for i := range keys {
			keys[i].override(sum, p)
		}
		sum.Env.Set = append(sum.Env.Set, p.Env.Set...)
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
	sum.Presets = append(sum.Presets, p.Presets...)
	sum.FS.Rules = append(sum.FS.Rules, p.FS.Rules...)
	sum.FS.Deny = append(sum.FS.Deny, p.FS.Deny...)
	sum.FS.Cache = append(sum.FS.Cache, p.FS.Cache...)
	sum.Closed = append(sum.Closed, p.Closed...)
	addPorts(&sum.Net.ConnectTCP, p.Net.ConnectTCP)
	addPorts(&sum.Net.BindTCP, p.Net.BindTCP)
	sum.Net.Unix = append(sum.Net.Unix, p.Net.Unix...)
	sum.Env.Allow = append(sum.Env.Allow, p.Env.Allow...)
	sum.Env.Set = append(sum.Env.Set, p.Env.Set...)
	if p.Guard.Off {
		sum.Guard = Guard{Off: true, Words: sum.Guard.Words}
	}
	sum.Guard.Lists = append(sum.Guard.Lists, p.Guard.Lists...)
	sum.Guard.Words = append(sum.Guard.Words, p.Guard.Words...)
	for i := range keys {
		keys[i].override(sum, p)
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

// systems are those that a policy has overrides for.
var systems = []string{"linux", "macos"}

// part is where a policy has the overrides for one system.
func (p *Policy) part(os string) **Policy {
	if os == "macos" {
		return &p.MacOS
	}
	return &p.Linux
}

// parts are the policy and its overrides for single systems, those that there are.
func (p *Policy) parts() []*Policy {
	return slices.DeleteFunc([]*Policy{p, p.Linux, p.MacOS}, func(p *Policy) bool { return p == nil })
}

// forSystem are the overrides for one system; never nil.
func (p *Policy) forSystem(os string) *Policy { return cmp.Or(*p.part(os), &Policy{}) }

// GuardOn is what the policy's guard is on one system.
func (p *Policy) GuardOn(os string) *Guard {
	if len(p.Guard.Lists)+len(p.forSystem(os).Guard.Lists) == 0 {
		return &Guard{} // most have none, and to put all together costs
	}
	return &p.on(os).Guard
}

// LimitsOn are the policy's limits on one system.
func (p *Policy) LimitsOn(os string) Limits { return p.on(os).Limits }

// Audit asks for a log of what ran: package sandbox writes it. There is one when
// anything is said about it. A Value of "" is not said.
type Audit struct {
	Dir      Named // as in Rule.Path; in zsbx's own directory when not said
	Keep     Named // how many days files are kept, "0" for ever; 90 when not said
	Required Named // "true": no command runs without its line
}

// AuditLog is the log that the policy asks for on one machine, with what is not said,
// and nil for none. Dir is absolute then; it need not exist, and no link is followed.
func (p *Policy) AuditLog(h Host) (*Audit, error) {
	if p.Audit == (Audit{}) && p.forSystem(h.OS).Audit == (Audit{}) {
		return nil, nil
	}
	a := p.on(h.OS).Audit
	dir, err := h.absolute(cmp.Or(a.Dir.Value, "${XDG_STATE_HOME:-~/.local/state}/zsbx/audit"))
	if err != nil {
		return nil, Errors{{Origin: a.Dir.Origin, Code: CodeValue, Msg: fmt.Sprintf("the audit log's directory %q", a.Dir.Value), Err: err}}
	}
	a.Dir.Value, a.Keep.Value = dir, cmp.Or(a.Keep.Value, "90")
	return &a, nil
}

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
	seen := make(map[Wider]bool)
	for _, os := range systems {
		for _, w := range p.on(os).widens(base.on(os)) {
			if !seen[w] {
				seen[w], wider = true, append(wider, w)
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
		if old := k.values(base); old != nil && k.kind >= scalar {
			before = old[0].Value
		}
		for _, v := range k.values(p) {
			wider := k.wider(v.Value, before, base)
			if l, is := k.at(p).(Limit); is { // of which 0 is none
				than := *k.at(base).(Limit).Value
				wider = than != 0 && (*l.Value == 0 || *l.Value > than)
			}
			if wider {
				all = append(all, Wider{k.name, k.describe(v), v.Origin})
			}
		}
	}
	return all
}

// describe is what a value asks for, in a few words.
func (k *key) describe(v Named) string {
	switch {
	case k.kind == textTable:
		return v.Name + "=" + strconv.Quote(v.Value)
	case k.kind >= scalar, k.kind == portList:
		return v.Value
	}
	return strconv.Quote(v.Value)
}

// unshares reports whether something private becomes shared.
func unshares(after, before string, _ *Policy) bool {
	return before == wordPrivate && after == wordShared
}

// looser reports whether an environment mode lets more through: scrubbed mode would
// hold back a loader's variables, which mode "vars" does not.
func looser(after, before string, base *Policy) bool {
	return slices.Index(envModes, after) > slices.Index(envModes, cmp.Or(before, EnvScrubbed)) ||
		after == EnvVars && slices.ContainsFunc(base.Env.Allow, func(n Named) bool { return steersLoader(n.Value) })
}
