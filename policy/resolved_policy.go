package policy

import "github.com/zsbx/zsbx/policy/glob"

// Policy writes what was resolved as a policy again, with canonical paths:
// the rules of the baseline and of presets are in it, its system categories
// are empty. It does not name the private temporary directory, which belongs
// to one run. Resolved on the same machine it gives the same result.
func (r *Resolved) Policy() *Policy {
	p := &Policy{Env: r.env, Limits: r.Limits, Private: r.Private, Guard: r.Guard, Audit: r.audit}
	for _, c := range p.FS.System.categories() {
		*c.rules = []Rule{}
	}
	for i := range r.Paths {
		if from := r.Paths[i].Rule.Origin; from.Source != sourceTemp {
			p.FS.Rules = append(p.FS.Rules, Rule{Path: literal(r.Paths[i].Path), Access: r.Paths[i].Access, Origin: from})
		}
	}
	for _, d := range r.Deny {
		pattern := d.Pattern
		if !d.Glob {
			pattern = glob.QuoteMeta(pattern)
		}
		p.FS.Deny = append(p.FS.Deny, Deny{Pattern: literal(pattern), Origin: d.Deny.Origin})
	}
	switch r.Net.Mode {
	case NetNone:
		p.Net.Allow = &Flag{Origin: r.Net.From}
	case NetPorts:
		p.Net.Allow = &Flag{Origin: r.Net.From}
		p.Net.ConnectTCP = append([]Port{}, r.Net.ConnectTCP...)
		p.Net.BindTCP = append([]Port{}, r.Net.BindTCP...)
	case NetOpen:
		if r.Net.From.Source != "default" {
			p.Net.Allow = &Flag{Value: true, Origin: r.Net.From}
		}
	}
	for i := range r.Net.Unix {
		p.Net.Unix = append(p.Net.Unix, Named{Value: literal(r.Net.Unix[i].Path), Origin: r.Net.Unix[i].Rule.Origin})
	}
	return p
}
