package learn

import (
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// presets proposes presets for what they open, and returns the needs that are left. One
// that opens an agent's login is none to propose.
func (p *proposer) presets(needs []Need) (out []Proposal, _ []Need) {
	for _, info := range policy.Presets() {
		pol, _ := policy.Preset(info.Name) // it is known
		r, err := pol.Resolve(*p.r.Host())
		if err != nil || slices.ContainsFunc(p.r.Presets, func(n policy.Named) bool { return n.Value == info.Name }) {
			continue
		}
		paths := slices.Concat(r.Paths, r.Create)
		if slices.ContainsFunc(paths, func(x policy.Path) bool { return p.r.Secret(x.Path) != "" }) {
			continue
		}
		q := Proposal{Preset: info.Name}
		needs = slices.DeleteFunc(needs, func(n Need) bool {
			in := covers(paths, &n)
			if in {
				q.Needs = append(q.Needs, n)
			}
			return in
		})
		if q.Needs != nil {
			out = append(out, q)
		}
	}
	return out, needs
}

// covers reports whether paths that a preset opens allow a need.
func covers(paths []policy.Path, n *Need) bool {
	var got policy.Access
	for i := range paths {
		if x := &paths[i]; x.Covers(n.Path) && (!n.Change || x.Path != n.Path || x.Rule.Create) {
			got |= x.Access
		}
	}
	return n.Access&^got == 0
}
