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
			p.Net.Unix = append(p.Net.Unix, policy.Named{Value: short(q.Path, r)})
		case q.Bind:
			p.Net.BindTCP = append(p.Net.BindTCP, policy.Port{Number: q.Port})
		case q.Port != 0:
			p.Net.ConnectTCP = append(p.Net.ConnectTCP, policy.Port{Number: q.Port})
		default:
			p.FS.Rules = append(p.FS.Rules, policy.Rule{Path: short(q.Path, r), Access: q.Access, Create: q.Create})
		}
	}
	return p
}

// Comments are lines of TOML for what is proposed as a comment.
func Comments(list []Proposal, r *policy.Resolved) string {
	var b strings.Builder
	for i := range list {
		q := &list[i]
		if q.Harmless == "" {
			continue
		}
		var text strings.Builder
		one := *q
		one.Harmless, one.Create = "", false
		if Policy([]Proposal{one}, r).EncodeTOML(&text) != nil {
			continue
		}
		line := strings.Join(slices.DeleteFunc(strings.Split(text.String(), "\n"), func(l string) bool { return l == "" || l[0] == '[' }), " ")
		line = strings.NewReplacer("[   ", "[", ", ]", "]").Replace(line)
		fmt.Fprintf(&b, "# %s  # %s\n", line, q.Harmless)
	}
	return b.String()
}

// Flag is a proposal as flags of run.
func (q *Proposal) Flag(r *policy.Resolved) string {
	switch {
	case q.Preset != "":
		return "--preset " + q.Preset
	case q.Socket:
		return "--unix " + shell.Quote(short(q.Path, r))
	case q.Bind:
		return "--bind-tcp " + strconv.Itoa(int(q.Port))
	case q.Port != 0:
		return "--connect-tcp " + strconv.Itoa(int(q.Port))
	}
	return "--" + strings.ReplaceAll(q.Access.String(), "_", "-") + " " + shell.Quote(short(q.Path, r))
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

// short writes a canonical path as a rule may.
func short(p string, r *policy.Resolved) string {
	switch {
	case p == r.Dir:
		return "."
	case r.Dir != "/" && policy.Within(p, r.Dir):
		p = "./" + p[len(r.Dir)+1:]
	case r.Home != "" && r.Home != "/" && p != r.Home && policy.Within(p, r.Home):
		p = "~" + p[len(r.Home):]
	}
	return strings.ReplaceAll(p, "$", "$$")
}
