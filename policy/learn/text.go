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
		if q := &list[i]; q.Harmless == "" {
			h := q.Hint(r)
			h.Create = q.Create
			h.put(p)
		}
	}
	return p
}

// Comments are lines of TOML for what is proposed as a comment.
func Comments(list []Proposal, r *policy.Resolved) string {
	var b strings.Builder
	for i := range list {
		if list[i].Harmless != "" {
			line := list[i].Hint(r).TOML()
			if table, rest, ok := strings.Cut(line, "] "); ok && table[0] == '[' {
				line = rest
			}
			fmt.Fprintf(&b, "# %s  # %s\n", line, list[i].Harmless)
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
