package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hash is the SHA-256, in hexadecimal, of what the policy means. Two policies
// that differ only in origins, in the order of rules, in repetitions or in
// their file's layout have the same one; policies that may mean different
// things have different ones.
func (p *Policy) Hash() string {
	sum := sha256.Sum256([]byte("zsbx policy 1\n" + strings.Join(p.statements(""), "\n")))
	return hex.EncodeToString(sum[:])
}

// statements are the sorted sentences a policy consists of. Every string in
// them is quoted, so that no value can look like a sentence of its own.
func (p *Policy) statements(prefix string) []string {
	var all []string
	add := func(words ...string) { all = append(all, prefix+strings.Join(words, " ")) }
	for _, n := range p.Presets {
		add("preset", strconv.Quote(n.Value))
	}
	for _, r := range p.FS.Rules {
		add(r.Access.String(), r.flags(), strconv.Quote(r.Path))
	}
	for _, d := range p.FS.Deny {
		add("deny", strconv.Quote(d.Pattern))
	}
	for _, c := range p.FS.System.categories() {
		if *c.rules != nil {
			add("system", c.key)
		}
		for _, r := range *c.rules {
			add("system", c.key, r.flags(), strconv.Quote(r.Path))
		}
	}
	if p.Net.Allow != nil {
		add("net", strconv.FormatBool(p.Net.Allow.Value))
	}
	for key, ports := range map[string][]Port{"connect_tcp": p.Net.ConnectTCP, "bind_tcp": p.Net.BindTCP} {
		if ports != nil {
			add(key)
		}
		for _, port := range ports {
			add(key, strconv.Itoa(int(port.Number)))
		}
	}
	for _, n := range p.Net.Unix {
		add("unix", strconv.FormatBool(n.Optional), strconv.Quote(n.Value))
	}
	if p.Env.Mode != "" {
		add("env", strconv.Quote(string(p.Env.Mode)))
	}
	for _, n := range p.Env.Allow {
		add("env allow", strconv.Quote(n.Value))
	}
	for _, v := range lastOfEach(p.Env.Set) {
		add("env set", strconv.Quote(v.Name), strconv.Quote(v.Value))
	}
	for _, ch := range p.Private.all() {
		if ch.value.Value != "" {
			add(ch.table, ch.key, ch.value.Value)
		}
	}
	for _, l := range p.Limits.All() {
		if l.Said() {
			add(l.Key, l.text(*l.Value))
		}
	}
	p.Guard.statements(add)
	for key, v := range p.Audit {
		add("audit", key, strconv.Quote(v.Value))
	}
	if p.Linux != nil {
		all = append(all, p.Linux.statements(prefix+"linux ")...)
	}
	if p.MacOS != nil {
		all = append(all, p.MacOS.statements(prefix+"macos ")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// flags are a rule's in a statement.
func (r *Rule) flags() string { return fmt.Sprintf("%t,%t", r.Optional || r.Create, r.Create) }

// category is one of the lists of System.
type category struct {
	key    string
	access Access
	rules  *[]Rule
}

// categories lists System's lists with their names in a file and the access
// that all rules in them have.
func (s *System) categories() [3]category {
	return [3]category{
		{"executable", Read | Exec, &s.Executable},
		{"read_only", Read, &s.ReadOnly},
		{"read_write", Read | Write, &s.ReadWrite},
	}
}

// lastOfEach keeps of each variable the last one set, sorted by name.
func lastOfEach(vars []Var) []Var {
	vars = slices.Clone(vars)
	slices.Reverse(vars)
	slices.SortStableFunc(vars, func(a, b Var) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(vars, func(a, b Var) bool { return a.Name == b.Name })
}
