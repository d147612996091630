package policy

import (
	"fmt"
	"slices"
	"strconv"
)

// Wider is one thing that a policy asks for beyond another.
type Wider struct {
	Key    string // as in a policy file: fs.rw, net.connect_tcp
	Value  string // in a few words, or quoted as it is written
	Origin Origin
}

// OnlyTightens reports whether putting p over base can take rights away but
// not add any, on either system; base is what was merged before it, nil for
// nothing. Such a policy may come from a stranger. What it holds against it
// is what asks for more: rules, presets, ports, sockets, variables, a
// looser environment, a longer time.
//
// Denials, empty system categories, "allow = false" and lower limits tighten.
// A list of ports does not: next to another list it adds to it.
func (p *Policy) OnlyTightens(base *Policy) (bool, []Wider) {
	if base == nil {
		base = &Policy{}
	}
	var wider []Wider
	for _, os := range []string{"linux", "macos"} {
		wider = append(wider, p.on(os).widens(base.on(os))...)
	}
	wider = compactWider(wider)
	return len(wider) == 0, wider
}

// compactWider removes repetitions and keeps the order.
func compactWider(all []Wider) []Wider {
	seen := make(map[Wider]bool, len(all))
	return slices.DeleteFunc(all, func(w Wider) bool {
		old := seen[w]
		seen[w] = true
		return old
	})
}

// widening collects what a policy asks for.
type widening []Wider

func (w *widening) add(key, value string, o Origin) { *w = append(*w, Wider{key, value, o}) }

func (w *widening) names(key string, all []Named) {
	for _, n := range all {
		w.add(key, strconv.Quote(n.Value), n.Origin)
	}
}

func (w *widening) rules(key string, all []Rule) {
	for _, r := range all {
		k, v := key, strconv.Quote(r.Path)
		if k == "" {
			k = "fs." + r.Access.String()
		}
		if r.Create {
			v += ", made when it is missing"
		}
		w.add(k, v, r.Origin)
	}
}

// widens lists what a flat policy asks for beyond base.
func (p *Policy) widens(base *Policy) []Wider {
	var w widening
	w.names("presets", p.Presets)
	w.rules("", p.FS.Rules)
	w.rules("fs.system.executable", p.FS.System.Executable)
	w.rules("fs.system.read_only", p.FS.System.ReadOnly)
	w.rules("fs.system.read_write", p.FS.System.ReadWrite)
	if p.Net.Allow != nil && p.Net.Allow.Value {
		w.add("net.allow", "true", p.Net.Allow.Origin)
	}
	for _, port := range p.Net.ConnectTCP {
		w.add("net.connect_tcp", fmt.Sprint(port.Number), port.Origin)
	}
	for _, port := range p.Net.BindTCP {
		w.add("net.bind_tcp", fmt.Sprint(port.Number), port.Origin)
	}
	w.names("net.unix", p.Net.Unix)
	switch {
	case p.Env.Mode != "" && looseness(p.Env.Mode) > looseness(base.Env.Mode):
		w.add("env.mode", string(p.Env.Mode), p.Env.From)
	case p.Env.Mode == EnvVars && slices.ContainsFunc(base.Env.Allow, func(n Named) bool { return steersLoader(n.Value) }):
		w.add("env.mode", string(p.Env.Mode), p.Env.From) // scrubbed mode would hold these back
	}
	w.names("env.allow", p.Env.Allow)
	for _, v := range p.Env.Set {
		w.add("env.set", v.Name+"="+strconv.Quote(v.Value), v.Origin)
	}
	before := base.Limits.All()
	for i, l := range p.Limits.All() {
		if !l.Said() || !longer(*l.Value, *before[i].Value) {
			continue
		}
		text := "none"
		if *l.Value != 0 {
			text = l.text(*l.Value)
		}
		w.add("limits."+l.Key, text, *l.From)
	}
	p.Audit.widens(base.Audit, &w)
	p.Private.widens(&base.Private, &w)
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
