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
	asks := func(n Need) bool { return n.Harmless == "" }
	var all []opened
	if slices.ContainsFunc(needs, asks) {
		all = p.candidates()
	}
	for {
		var best *opened
		var most []Need
		for i := range all {
			got := slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { return !all[i].covers(&n) })
			if slices.ContainsFunc(got, asks) && (len(got) > len(most) || len(got) == len(most) && len(all[i].paths) < len(best.paths)) {
				best, most = &all[i], got
			}
		}
		if best == nil {
			return needs
		}
		p.out = append(p.out, Proposal{Preset: best.name, Needs: most})
		needs = slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { return best.covers(&n) })
	}
}

// candidates are the presets that are not in use, but for those that open an agent's
// login.
func (p *proposer) candidates() []opened {
	var all []opened
	for _, info := range policy.Presets() {
		pol, err := policy.Preset(info.Name)
		if err != nil || slices.ContainsFunc(p.r.Presets, func(n policy.Named) bool { return n.Value == info.Name }) {
			continue
		}
		r, err := pol.Resolve(*p.r.Host())
		if err != nil {
			continue
		}
		paths := slices.Concat(r.Paths, r.Create)
		if !slices.ContainsFunc(paths, func(x policy.Path) bool { return p.r.Secret(x.Path) != "" }) {
			all = append(all, opened{info.Name, paths})
		}
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
