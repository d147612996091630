package learn

import (
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// opened is what a preset would open here.
type opened struct {
	name  string
	paths []policy.Path
}

// presets proposes presets for what they open, that with the most needs first, and
// returns the needs that are left.
func (p *proposer) presets(needs []Need) []Need {
	var all []opened
	if slices.ContainsFunc(needs, func(n Need) bool { return n.Harmless == "" }) {
		all = p.candidates()
	}
	for {
		var best *opened
		var most []Need
		for i := range all {
			var got []Need
			real := false
			for j := range needs {
				if all[i].covers(&needs[j]) {
					got = append(got, needs[j])
					real = real || needs[j].Harmless == ""
				}
			}
			if real && (len(got) > len(most) || len(got) == len(most) && len(all[i].paths) < len(best.paths)) {
				best, most = &all[i], got
			}
		}
		if best == nil {
			return needs
		}
		if slices.ContainsFunc(best.paths, func(x policy.Path) bool { return p.r.Secret(x.Path) != "" }) {
			best.paths = nil // an agent's login
			continue
		}
		p.out = append(p.out, Proposal{Preset: best.name, Needs: most})
		needs = slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { return best.covers(&n) })
	}
}

// candidates are the presets that are not in use.
func (p *proposer) candidates() []opened {
	var all []opened
	for _, info := range policy.Presets() {
		if slices.ContainsFunc(p.r.Presets, func(n policy.Named) bool { return n.Value == info.Name }) {
			continue
		}
		pol, err := policy.Preset(info.Name)
		if err != nil {
			continue
		}
		r, err := pol.Resolve(*p.h)
		if err != nil {
			continue
		}
		all = append(all, opened{info.Name, slices.Concat(r.Paths, r.Create)})
	}
	return all
}

func (o *opened) covers(n *Need) bool {
	var got policy.Access
	for i := range o.paths {
		if x := &o.paths[i]; x.Covers(n.Path) && (!n.Change || x.Path != n.Path || x.Rule.Create) {
			got |= x.Access
		}
	}
	return n.Access&^got == 0
}
