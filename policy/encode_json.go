package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// The shapes of a policy file in JSON. A nil list is left out, an empty one
// is written: for ports and system categories they differ.
type jsonPolicy struct {
	Presets []string       `json:"presets,omitzero"`
	FS      jsonFS         `json:"fs,omitzero"`
	Net     jsonNet        `json:"net,omitzero"`
	Env     jsonEnv        `json:"env,omitzero"`
	Limits  map[string]any `json:"limits,omitempty"`
	Process jsonProcess    `json:"process,omitzero"`
	Guard   map[string]any `json:"guard,omitempty"`
	Audit   map[string]any `json:"audit,omitempty"`
	Linux   *jsonPolicy    `json:"linux,omitempty"`
	MacOS   *jsonPolicy    `json:"macos,omitempty"`
}

type jsonFS struct {
	RO       []any      `json:"ro,omitzero"`
	ROX      []any      `json:"rox,omitzero"`
	RW       []any      `json:"rw,omitzero"`
	RWNoexec []any      `json:"rw_noexec,omitzero"`
	Deny     []string   `json:"deny,omitzero"`
	Home     string     `json:"home,omitempty"`
	System   jsonSystem `json:"system,omitzero"`
}

type jsonProcess struct {
	Pids string `json:"pids,omitempty"`
}

type jsonSystem struct {
	Executable []any `json:"executable,omitzero"`
	ReadOnly   []any `json:"read_only,omitzero"`
	ReadWrite  []any `json:"read_write,omitzero"`
}

type jsonNet struct {
	Allow      *bool    `json:"allow,omitempty"`
	ConnectTCP []uint16 `json:"connect_tcp,omitzero"`
	BindTCP    []uint16 `json:"bind_tcp,omitzero"`
	Unix       []any    `json:"unix,omitzero"`
}

type jsonEnv struct {
	Mode  EnvMode           `json:"mode,omitempty"`
	Allow []string          `json:"allow,omitzero"`
	Set   map[string]string `json:"set,omitempty"`
}

// jsonEntry is a path that is more than a string.
type jsonEntry struct {
	Path     string `json:"path"`
	Optional bool   `json:"optional,omitempty"`
	Create   bool   `json:"create,omitempty"`
}

// EncodeJSON writes the policy as a file that DecodeJSON reads as the same
// meaning. JSON has no comments: the origins are lost. It fails as EncodeTOML
// does.
func (p *Policy) EncodeJSON(w io.Writer) error {
	if err := p.encodable(); err != nil {
		return err
	}
	e := json.NewEncoder(hiddenEscaper{w})
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(p.json())
}

func (p *Policy) json() *jsonPolicy {
	j := &jsonPolicy{Presets: values(p.Presets)}
	for i := range p.FS.Rules {
		r := &p.FS.Rules[i]
		switch r.Access {
		case Read:
			j.FS.RO = append(j.FS.RO, r.json())
		case Read | Exec:
			j.FS.ROX = append(j.FS.ROX, r.json())
		case Read | Write:
			j.FS.RWNoexec = append(j.FS.RWNoexec, r.json())
		default:
			j.FS.RW = append(j.FS.RW, r.json())
		}
	}
	for _, d := range p.FS.Deny {
		j.FS.Deny = append(j.FS.Deny, d.Pattern)
	}
	j.FS.Home, j.Process.Pids = p.Private.Home.Value, p.Private.Pids.Value
	s := &p.FS.System
	j.FS.System = jsonSystem{jsonRules(s.Executable), jsonRules(s.ReadOnly), jsonRules(s.ReadWrite)}
	if p.Net.Allow != nil {
		j.Net.Allow = &p.Net.Allow.Value
	}
	j.Net.ConnectTCP, j.Net.BindTCP = numbers(p.Net.ConnectTCP), numbers(p.Net.BindTCP)
	for _, n := range p.Net.Unix {
		r := Rule{Path: n.Value, Optional: n.Optional}
		j.Net.Unix = append(j.Net.Unix, r.json())
	}
	j.Env.Mode, j.Env.Allow = p.Env.Mode, values(p.Env.Allow)
	for _, v := range p.Env.Set {
		if j.Env.Set == nil {
			j.Env.Set = map[string]string{}
		}
		j.Env.Set[v.Name] = v.Value
	}
	for _, l := range p.Limits.All() {
		if !l.Said() {
			continue
		}
		if j.Limits == nil {
			j.Limits = map[string]any{}
		}
		if j.Limits[l.Key] = *l.Value; l.quote {
			j.Limits[l.Key] = l.text(*l.Value)
		}
	}
	j.Guard, j.Audit = p.Guard.json(), p.Audit.json()
	if p.Linux != nil {
		j.Linux = p.Linux.json()
	}
	if p.MacOS != nil {
		j.MacOS = p.MacOS.json()
	}
	return j
}

func (r *Rule) json() any {
	if r.Optional || r.Create {
		return jsonEntry{r.Path, r.Optional && !r.Create, r.Create}
	}
	return r.Path
}

func jsonRules(rules []Rule) []any {
	if rules == nil {
		return nil
	}
	list := []any{}
	for i := range rules {
		list = append(list, rules[i].json())
	}
	return list
}

func values(names []Named) []string {
	var list []string
	for _, n := range names {
		list = append(list, n.Value)
	}
	return list
}

func numbers(ports []Port) []uint16 {
	if ports == nil {
		return nil
	}
	list := []uint16{}
	for _, p := range ports {
		list = append(list, p.Number)
	}
	return list
}

// encodable says what of a policy cannot be written into a file: what the
// decoder refuses, and rules that belong to no key.
func (p *Policy) encodable() error {
	var errs Errors
	check := func(o Origin, s string, check func(string) error) {
		err := check(s)
		if err == nil && !utf8.ValidString(s) {
			err = fmt.Errorf("%q is not UTF-8", s)
		}
		if err != nil {
			errs = append(errs, &Error{Origin: o, Code: CodeValue, Msg: "cannot be written into a policy file", Err: err})
		}
	}
	for _, r := range p.paths() {
		check(r.Origin, r.Path, checkPath)
		if r.Access&Read == 0 || r.Access&^(Read|Write|Exec) != 0 {
			check(r.Origin, "", func(string) error { return fmt.Errorf("no key means %s", r.Access) })
		}
	}
	for _, d := range p.FS.Deny {
		check(d.Origin, d.Pattern, checkDeny)
	}
	for _, n := range p.Presets {
		check(n.Origin, n.Value, checkPresetName)
	}
	for _, n := range p.Net.Unix {
		check(n.Origin, n.Value, checkPath)
	}
	if p.Env.Mode != "" {
		check(p.Env.From, string(p.Env.Mode), checkEnvMode)
	}
	for _, n := range p.Env.Allow {
		check(n.Origin, n.Value, checkEnvGlob)
	}
	for _, v := range p.Env.Set {
		check(v.Origin, v.Name, checkEnvName)
		check(v.Origin, v.Value, checkEnvValue)
	}
	for _, n := range p.Guard.Lists {
		check(n.Origin, n.Value, checkListName)
	}
	for _, list := range p.Guard.each() {
		check(Origin{}, list, checkListName)
		for _, w := range p.Guard.Words[list] {
			check(w.Origin, w.Value, checkGuardWords)
		}
	}
	for key, v := range p.Audit {
		check(v.Origin, v.Value, func(s string) error { _, err := p.Audit.check(key, s); return err })
	}
	for _, own := range []*Policy{p.Linux, p.MacOS} {
		if own == nil {
			continue
		}
		var more Errors
		if errors.As(own.encodable(), &more) {
			errs = append(errs, more...)
		}
	}
	return errs.err()
}

// hiddenEscaper writes JSON with the characters that a policy file may not have as
// they are escaped, which only its strings have.
type hiddenEscaper struct{ w io.Writer }

func (h hiddenEscaper) Write(b []byte) (int, error) {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if !isHidden(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, u)
		}
	}
	if _, err := h.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
