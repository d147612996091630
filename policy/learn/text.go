package learn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
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

// rule is a proposal as a key of a policy and a value of its list.
func (q *Proposal) rule(r *policy.Resolved) (key, value string) {
	switch port := strconv.Itoa(int(q.Port)); {
	case q.Preset != "":
		return "presets", q.Preset
	case q.Socket:
		return "unix", r.Short(q.Path)
	case q.Bind:
		return "bind_tcp", port
	case q.Port != 0:
		return "connect_tcp", port
	}
	return q.Access.String(), r.Short(q.Path)
}

// Comments are lines of TOML for what is proposed as a comment.
func Comments(list []Proposal, r *policy.Resolved) string {
	var b strings.Builder
	for i := range list {
		key, value := list[i].rule(r)
		if list[i].Port == 0 {
			value = policy.QuoteTOML(value)
		}
		if list[i].Harmless != "" {
			fmt.Fprintf(&b, "# %s = [%s]  # %s\n", key, value, list[i].Harmless)
		}
	}
	return b.String()
}

// Flag is a proposal as flags of run.
func (q *Proposal) Flag(r *policy.Resolved) string {
	key, value := q.rule(r)
	return "--" + strings.TrimSuffix(strings.ReplaceAll(key, "_", "-"), "s") + " " + shell.Quote(value)
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
		all, create = append(all, q.Flag(r)), create || q.Create
	}
	if create {
		all = append(all, "--create-missing")
	}
	return strings.Join(all, " ")
}
