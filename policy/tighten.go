package policy

import "slices"

// OnlyTightens reports whether putting p over base can take rights away but
// not add any, on either system; base is what was merged before it, nil for
// nothing. Such a policy may come from a stranger. What it holds against it
// is where it asks for more: rules, presets, ports, sockets, variables, a
// looser environment, a longer time.
//
// Denials, empty system categories, "allow = false" and lower limits tighten.
// A list of ports does not: next to another list it adds to it.
func (p *Policy) OnlyTightens(base *Policy) (bool, []Origin) {
	if base == nil {
		base = &Policy{}
	}
	var wider []Origin
	for _, os := range []string{"linux", "macos"} {
		wider = append(wider, p.on(os).widens(base.on(os))...)
	}
	wider = compactOrigins(wider)
	return len(wider) == 0, wider
}

// compactOrigins removes repetitions and keeps the order.
func compactOrigins(all []Origin) []Origin {
	seen := make(map[Origin]bool, len(all))
	return slices.DeleteFunc(all, func(o Origin) bool {
		old := seen[o]
		seen[o] = true
		return old
	})
}

// widens lists what a flat policy asks for beyond base.
func (p *Policy) widens(base *Policy) []Origin {
	var w []Origin
	for _, n := range p.Presets {
		w = append(w, n.Origin)
	}
	for _, r := range p.FS.Rules {
		w = append(w, r.Origin)
	}
	for _, c := range p.FS.System.categories() {
		for _, r := range *c.rules {
			w = append(w, r.Origin)
		}
	}
	if p.Net.Allow != nil && p.Net.Allow.Value {
		w = append(w, p.Net.Allow.Origin)
	}
	for _, port := range p.Net.ConnectTCP {
		w = append(w, port.Origin)
	}
	for _, port := range p.Net.BindTCP {
		w = append(w, port.Origin)
	}
	for _, n := range p.Net.Unix {
		w = append(w, n.Origin)
	}
	if p.Env.Mode != "" && looseness(p.Env.Mode) > looseness(base.Env.Mode) {
		w = append(w, p.Env.From)
	}
	if p.Env.Mode == EnvVars && slices.ContainsFunc(base.Env.Allow, func(n Named) bool { return steersLoader(n.Value) }) {
		w = append(w, p.Env.From) // scrubbed mode would hold these back
	}
	for _, n := range p.Env.Allow {
		w = append(w, n.Origin)
	}
	for _, v := range p.Env.Set {
		w = append(w, v.Origin)
	}
	if p.Limits.saysTimeout() && longer(int64(p.Limits.Timeout), int64(base.Limits.Timeout)) {
		w = append(w, p.Limits.TimeoutFrom)
	}
	if p.Limits.saysMaxOutput() && longer(p.Limits.MaxOutput, base.Limits.MaxOutput) {
		w = append(w, p.Limits.MaxOutputFrom)
	}
	return w
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
