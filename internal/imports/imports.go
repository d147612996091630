package imports

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"mvdan.cc/sh/v3/syntax"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/guard"
	"github.com/zsbx/zsbx/policy"
)

// keyFile says what becomes of each key.
//
//go:embed keys.txt
var keyFile string

// Result is what a file became.
type Result struct {
	Format string
	Policy *policy.Policy
	Left   []string // what was not taken over as it is: a key, or a line with its number, and why
}

// Formats returns the names of the formats.
func Formats() []string { return []string{"codex", "firejail", "zed", "srt", "landrun"} }

type reader struct {
	Result
	to   *policy.Policy    // the part that is filled: the whole, or that for one system
	keys map[string]string // what becomes of the format's keys
	name string
	errs policy.Errors
}

type setting struct {
	key    string   // as in keys.txt
	where  string   // where people find it
	values []string // "" for what is not a string
}

// Read makes a policy from a file in one of the formats. With "" the file's name decides,
// and the content of JSON. It returns all errors, each with its place.
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
	readers := map[string]func([]byte) ([]setting, error){
		"landrun":  r.landrun,
		"firejail": r.firejail,
		"codex":    r.tree,
		"zed":      r.tree,
		"srt":      r.tree,
	}
	if readers[format] == nil {
		msg := fmt.Sprintf("%s: unknown format: must be one of %s", name, strings.Join(Formats(), ", "))
		return nil, policy.Errors{{Code: policy.CodeValue, Hint: "--format srt", Msg: msg}}
	}
	for f := strings.Fields(keys("+")[format]); len(f) > 1; f = f[2:] {
		r.do(setting{where: f[0]}, f[1])
	}
	settings, err := readers[format](data)
	if err != nil {
		origin := policy.Origin{Source: name}
		return nil, policy.Errors{{Origin: origin, Code: policy.CodeSyntax, Msg: "as " + format, Err: err}}
	}
	parts := map[string]*policy.Policy{"linux": p.Linux, "macos": p.MacOS}
	for _, s := range settings {
		r.to = p
		if system, key, _ := strings.Cut(s.key, "."); parts[system] != nil { // Zed's settings for one of them
			s.key = key
			r.to = parts[system]
		}
		r.apply(s)
	}
	r.hosts()
	if r.errs != nil {
		return nil, r.errs
	}
	return &r.Result, nil
}

// keys returns the lines of keys.txt for a format, by their keys.
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

// apply does what keys.txt says about a setting, and notes why that is not all of it.
func (r *reader) apply(s setting) {
	text := strings.Join(s.values, ",")
	if strings.Contains(text, "\x00") {
		r.left(s.where, "what it expands to is not known")
		return
	}
	rest := cmp.Or(r.keys[s.key+"="+text], r.keys[s.key])
	for key := s.key; rest == "" && key != ""; {
		key = key[:max(strings.LastIndexByte(key, '.'), 0)]
		rest = r.keys[key]
		if strings.HasPrefix(rest, "fs.") || strings.HasPrefix(rest, "net.") {
			rest = "" // these are lists
		}
	}
	actions, why, _ := strings.Cut(cmp.Or(rest, r.keys["*"], "- zsbx does not know it"), " ")
	for action := range strings.SplitSeq(actions, ",") {
		r.do(s, action)
	}
	if why != "" && len(s.values) > 0 && s.values[0] != "false" {
		r.left(s.where, why)
	}
}

func (r *reader) do(s setting, action string) {
	key, value, fixed := strings.Cut(action, "=")
	if fixed {
		s.values = []string{value}
	}
	if strings.HasPrefix(key, "fs.") || strings.HasSuffix(key, "_tcp") || key == "net.hosts" {
		_ = r.to.Put(key) // an empty list means something, too
	}
	if key == "" || key == "-" {
		return // zsbx does it by itself, or says why not
	}
	if action == "net.allow=true" {
		r.to.Net.ConnectTCP = nil
		r.to.Net.BindTCP = nil
	}
	for _, v := range s.values {
		if v == "" && key != "set" {
			r.fail(s.where, "strings are needed, none of them empty")
			continue
		}
		r.value(s, key, v)
	}
}

// value does what keys.txt says about one value of a setting.
func (r *reader) value(s setting, key, v string) {
	switch key {
	case "unknown":
		r.fail(s.where, "unknown value %q", v)
	case "set":
		name := s.key[strings.LastIndexByte(s.key, '.')+1:]
		r.put(s, "env.set", name+"="+v)
	case "env":
		if strings.Contains(v, "=") {
			r.put(s, "env.set", v)
		} else {
			r.put(s, "env.allow", v)
		}
	case "net.hosts", "net.deny_hosts":
		r.host(s, key, v)
	default:
		isPath := strings.HasPrefix(key, "fs.") || key == "net.unix"
		if isPath && key != "fs.deny" && strings.ContainsAny(v, "*?[") {
			r.left(s.where+" "+v, "rules take no patterns, only denials do")
			return
		}
		if isPath {
			v = cmp.Or(strings.TrimRight(v, "/"), "/")
			v = strings.ReplaceAll(v, "$", "$$")
		}
		r.put(s, key, v)
	}
}

// host takes over a domain that zsbx can limit the network to.
func (r *reader) host(s setting, key, v string) {
	from := policy.Origin{Source: r.name + ": " + s.where}
	if err := r.to.Put(key, policy.Named{Value: v, Origin: from}); err != nil {
		r.left(s.where+" "+rule.Printable(v), err.Error())
	}
}

// hosts leaves out the domains of a sandbox that has no network, and denials of what no domain allows.
func (r *reader) hosts() {
	net := &r.Policy.Net
	const lists = "the list of domains"
	if r.Format == "codex" && net.Allow.Value != "true" && net.Hosts != nil {
		r.left(lists, "the sandbox has no network")
		net.Hosts = nil
	}
	if len(net.Hosts) == 0 && net.Allow.Value == "false" {
		net.Hosts = nil // that is enough
	}
	var rules, denials []rule.Rule
	for _, h := range net.Hosts {
		one, _ := rule.Parse(h.Rule, rule.Marks{}) // Put has checked it
		rules = append(rules, one)
	}
	for _, d := range net.DenyHosts {
		one, _ := rule.ParseDenial(d.Value)
		denials = append(denials, one)
	}
	void := map[int]bool{}
	for _, p := range rule.Check(rules, denials) {
		void[p.Index] = p.Denial
	}
	var kept []policy.Named
	for i, d := range net.DenyHosts {
		if void[i] {
			r.left("denied "+d.Value, "no domain that is allowed has it")
			continue
		}
		kept = append(kept, d)
	}
	net.DenyHosts = kept
}

func (r *reader) put(s setting, key, v string) {
	mayMiss := key == "net.unix" || strings.HasPrefix(key, "fs.") && key != "fs.deny"
	value := policy.Named{Value: v, Optional: mayMiss, Origin: policy.Origin{Source: r.name + ": " + s.where}}
	if err := r.to.Put(key, value); err != nil {
		r.fail(s.where, "%q: %v", v, err)
	}
}

func (r *reader) left(place, why string) { r.Left = append(r.Left, place+": "+why) }

func (r *reader) fail(place, format string, args ...any) {
	r.errs = append(r.errs, &policy.Error{
		Origin: policy.Origin{Source: r.name},
		Code:   policy.CodeValue,
		Msg:    place + ": " + fmt.Sprintf(format, args...),
	})
}

// tree reads JSON with comments and commas before closing brackets, or TOML: srt's
// ~/.srt-settings.json, Zed's settings.json, codex' ~/.codex/config.toml.
func (r *reader) tree(data []byte) ([]setting, error) {
	t := map[string]any{}
	var err error
	if r.Format == "codex" {
		t["sandbox_mode"] = "read-only"
		err = toml.Unmarshal(data, &t)
	} else {
		data, err = readJSON(data, &t)
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

// readJSON reads JSON with comments and commas before closing brackets. It returns the text without
// these.
func readJSON(data []byte, v any) (plain []byte, err error) {
	plain, err = hujson.Standardize(data)
	if err != nil {
		return nil, err
	}
	return plain, json.Unmarshal(plain, v)
}

// flatten returns all settings below a value, sorted by their keys.
func flatten(key string, v any) (all []setting) {
	s := setting{key: key, where: key}
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

// landrun reads the first command line of landrun in a shell script.
func (r *reader) landrun(data []byte) (all []setting, err error) {
	file, err := syntax.NewParser().Parse(bytes.NewReader(data), "")
	if err != nil {
		return nil, err
	}
	var args []string
	found := false
	known := map[string]string{"HOME": "~", "PWD": "."}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && !found {
			for _, w := range c.Args {
				text := guard.Text(w.Parts, known)
				if found {
					args = append(args, text)
				}
				found = found || path.Base(text) == "landrun"
			}
		}
		return !found
	})
	if !found {
		return nil, errors.New("there is no landrun command in it")
	}
	r.left("(no baseline)", "landrun opens nothing by itself: run with --no-baseline to have "+
		"no presets, no files of shells and no private temporary directory either")
	flags := flag.NewFlagSet("landrun", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for key, actions := range r.keys {
		if strings.ContainsAny(actions, "-=") && key != "log-level" {
			flags.Bool(key, false, "")
			continue
		}
		flags.Func(key, "", func(v string) error {
			all = append(all, setting{key, "--" + key, strings.Split(v, ",")})
			return nil
		})
	}
	err = flags.Parse(args)
	flags.Visit(func(f *flag.Flag) {
		if f.Value.String() == "true" {
			all = append(all, setting{f.Name, "--" + f.Name, []string{"true"}})
		}
	})
	return all, err
}

// firejail reads a profile. What it does not name is readable, and the home
// directory writable, unless it has whitelists.
func (r *reader) firejail(data []byte) (all []setting, err error) {
	home := true
	macros := strings.NewReplacer(append(strings.Fields(keys("$")["firejail"]), "${", "\x00")...)
	for i, text := range strings.Split(string(data), "\n") {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(text, " ")
		value = macros.Replace(strings.TrimSpace(value))
		all = append(all, setting{key, fmt.Sprintf("%d: %s", i+1, text), []string{value}})
		if key == "private" || (key == "whitelist" || key == "allow") && strings.HasPrefix(value, "~") {
			home = false
		}
	}
	if home {
		all = append(all, setting{"(home)", "(default)", []string{"~"}})
	}
	return all, nil
}
