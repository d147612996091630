package learn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// Policy is what proposals ask for, without the harmless ones. Paths are written
// from the working directory and the home directory of r.
func Policy(list []Proposal, r *policy.Resolved) *policy.Policy {
	p := &policy.Policy{}
	for i := range list {
		q := &list[i]
		switch from := (policy.Origin{}); {
		case q.Harmless != "":
		case q.Preset != "":
			p.Presets = append(p.Presets, policy.Named{Value: q.Preset, Origin: from})
		case q.Socket:
			p.Net.Unix = append(p.Net.Unix, policy.Named{Value: r.Short(q.Path)})
		case q.Bind:
			p.Net.BindTCP = append(p.Net.BindTCP, policy.Port{Number: q.Port})
		case q.Port != 0:
			p.Net.ConnectTCP = append(p.Net.ConnectTCP, policy.Port{Number: q.Port})
		default:
			p.FS.Rules = append(p.FS.Rules, policy.Rule{Path: r.Short(q.Path), Access: q.Access, Create: q.Create})
		}
	}
	return p
}

// Comments are lines of TOML for what is proposed as a comment.
func Comments(list []Proposal, r *policy.Resolved) string {
	var b strings.Builder
	for i := range list {
		if list[i].Harmless != "" {
			fmt.Fprintf(&b, "# %s  # %s\n", list[i].Hint(r).line(), list[i].Harmless)
		}
	}
	return b.String()
}

// Flags are proposals as flags of run, without the harmless ones. asked says that
// there are rules among the flags already: without any the working directory can be
// read, which the first one ends.
func Flags(list []Proposal, r *policy.Resolved, asked bool) string {
	var all []string
	create := false
	for i := range list {
		q := &list[i]
		if q.Harmless != "" {
			continue
		}
		if q.Access != 0 && !asked {
			if asked = true; !slices.ContainsFunc(list, func(o Proposal) bool { return o.Path == r.Dir && o.Access == everything }) {
				all = append(all, "--rox .")
			}
		}
		all, create = append(all, q.Hint(r).String()), create || q.Create
	}
	if create {
		all = append(all, "--create-missing")
	}
	return strings.Join(all, " ")
}
