package imports

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/zsbx/zsbx/policy"
)

// keyFile says what becomes of each key.
//
//go:embed keys.txt
var keyFile string

// Result is what became of a file.
type Result struct {
	Format string
	Policy *policy.Policy
	Left   []string // what was not taken over as it is: a key, and why
}

// Formats are the names of the formats.
func Formats() []string { return []string{"codex", "zed", "srt"} }

type reader struct {
	Result
	to   *policy.Policy    // the part that is filled: all, or that for one system
	part string            // what begins the keys of one: "linux."
	keys map[string]string // what becomes of the format's keys
	name string
	errs policy.Errors
}

type setting struct {
	key    string   // as in keys.txt
	values []string // "" for what is no string
}

// Read makes a policy of a file in one of the formats; "" has the file's name tell it, and
// what JSON has in it. The errors name the place, and are all that is wrong.
func Read(format, name string, data []byte) (*Result, error) {
	if format == "" {
		format = keys("?")[path.Ext(name)]
		has := func(key string) bool { return bytes.Contains(data, []byte(key)) }
		switch {
		case format == "srt" && has(`"terminal"`):
			format = "zed"
		case format == "srt" && !has(`"filesystem"`) && !has(`"network"`): // another program's
			format = ""
		}
	}
	p := &policy.Policy{Linux: &policy.Policy{}, MacOS: &policy.Policy{}}
	r := &reader{name: name, Result: Result{Format: format, Policy: p}, to: p, keys: keys(format)}
	if !slices.Contains(Formats(), format) {
		return nil, policy.Errors{{Code: policy.CodeValue, Hint: "--format srt",
			Msg: fmt.Sprintf("%s: its format is not known: it is one of %s", name, strings.Join(Formats(), ", "))}}
	}
	for f := strings.Fields(keys("+")[format]); len(f) > 1; f = f[2:] {
		r.do(setting{key: f[0]}, f[1])
	}
	settings, err := r.tree(data)
	if err != nil {
		return nil, policy.Errors{{Origin: policy.Origin{Source: name}, Code: policy.CodeSyntax, Msg: "as " + format, Err: err}}
	}
	parts := map[string]*policy.Policy{"linux": p.Linux, "macos": p.MacOS}
	for _, s := range settings {
		r.to, r.part = p, ""
		if system, key, _ := strings.Cut(s.key, "."); parts[system] != nil { // Zed's settings for one of them
			s.key, r.to, r.part = key, parts[system], system+"."
		}
		r.apply(s)
	}
	if r.errs != nil {
		return nil, r.errs
	}
	return &r.Result, nil
}

// keys are the lines of keys.txt for a format, by their keys.
func keys(format string) map[string]string {
	all := map[string]string{}
	for l := range strings.Lines(keyFile) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(l), format+" "); ok {
			key, what, _ := strings.Cut(rest, " ")
			all[key] = what
		}
	}
	return all
}

// apply does what keys.txt says of a setting, and tells why that is not all.
func (r *reader) apply(s setting) {
	rest := cmp.Or(r.keys[s.key+"="+strings.Join(s.values, ",")], r.keys[s.key])
	for key := s.key; rest == "" && key != ""; {
		key = key[:max(strings.LastIndexByte(key, '.'), 0)]
		if rest = r.keys[key]; strings.HasPrefix(rest, "fs.") || strings.HasPrefix(rest, "net.") {
			rest = "" // these are lists
		}
	}
	actions, why, _ := strings.Cut(cmp.Or(rest, r.keys["*"], "- zsbx does not know it"), " ")
	for action := range strings.SplitSeq(actions, ",") {
		r.do(s, action)
	}
	if why != "" && len(s.values) > 0 && s.values[0] != "false" {
		r.left(s.key, why)
	}
}

func (r *reader) do(s setting, action string) {
	key, value, fixed := strings.Cut(action, "=")
	if fixed {
		s.values = []string{value}
	}
	if strings.HasPrefix(key, "fs.") {
		_ = r.to.Put(key) // an empty list says something, too
	}
	for _, v := range s.values {
		switch isPath := strings.HasPrefix(key, "fs.") || key == "net.unix"; {
		case key == "", key == "-": // zsbx does it by itself, or says why not
		case v == "" && key != "set":
			r.fail(s.key, "strings are needed, none of them empty")
		case key == "unknown":
			r.fail(s.key, "unknown value %q", v)
		case key == "set":
			r.put(s, "env.set", s.key[strings.LastIndexByte(s.key, '.')+1:]+"="+v)
		case key == "env":
			r.put(s, "env.allow", v)
		case isPath && key != "fs.deny" && strings.ContainsAny(v, "*?["):
			r.left(s.key+" "+v, "rules take no patterns, only denials do")
		case isPath:
			p := cmp.Or(strings.TrimRight(v, "/"), "/")
			r.put(s, key, strings.ReplaceAll(p, "$", "$$"))
		default:
			r.put(s, key, v)
		}
	}
}

func (r *reader) put(s setting, key, v string) {
	mayMiss := key == "net.unix" || strings.HasPrefix(key, "fs.") && key != "fs.deny"
	value := policy.Named{Value: v, Optional: mayMiss, Origin: policy.Origin{Source: r.name + ": " + r.part + s.key}}
	if err := r.to.Put(key, value); err != nil {
		r.fail(s.key, "%q: %v", v, err)
	}
}

func (r *reader) left(key, why string) { r.Left = append(r.Left, r.part+key+": "+why) }

func (r *reader) fail(key, format string, args ...any) {
	r.errs = append(r.errs, &policy.Error{Origin: policy.Origin{Source: r.name}, Code: policy.CodeValue, Msg: r.part + key + ": " + fmt.Sprintf(format, args...)})
}

// tree reads JSON with comments and commas before closing brackets, or TOML: srt's
// ~/.srt-settings.json, Zed's settings.json, codex' ~/.codex/config.toml.
func (r *reader) tree(data []byte) ([]setting, error) {
	t, err := map[string]any{}, error(nil)
	if r.Format == "codex" {
		t["sandbox_mode"] = "read-only"
		err = toml.Unmarshal(data, &t)
	} else if data, err = hujson.Standardize(data); err == nil {
		err = json.Unmarshal(data, &t)
	}
	switch {
	case err != nil:
	case t == nil, r.Format == "zed" && !bytes.Contains(data, []byte(`"sandbox"`)):
		err = errors.New("there are no settings of a sandbox in it")
	case t["sandbox_mode"] != "workspace-write":
		delete(t, "sandbox_workspace_write")
	}
	return flatten("", t), err
}

// flatten gives all settings below a value, sorted by their keys.
func flatten(key string, v any) (all []setting) {
	s := setting{key: key}
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, flatten(strings.TrimPrefix(key+"."+k, "."), v[k])...)
		}
		return all
	case []any:
		for _, item := range v {
			text, _ := item.(string)
			s.values = append(s.values, text)
		}
	default:
		s.values = []string{fmt.Sprint(v)}
	}
	return []setting{s}
}
